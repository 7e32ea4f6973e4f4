// Views that change nothing.
#pragma once

#include "graph/graph.h"

namespace foregrad {

/// Makes the readers of a view that has the very type of what it is taken of (`detach`, `alias`, a
/// full `slice`, `view` to the same sizes) read that instead. Graph outputs keep the view: it is a
/// tensor object of its own. The view nodes stay; `dce` removes them.
/// Runs on graphs in which nothing overwrites yet; linear. What becomes of a forward node depends
/// on forward nodes alone.
Graph fold_noop_views(Graph graph);

}  // namespace foregrad
