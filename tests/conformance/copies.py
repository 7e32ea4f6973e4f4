"""Copies of arguments: as they lie in memory, sharing what they share."""

import torch
from torch.utils._pytree import tree_map


class Copier:
    """Copies tensors so that the copies share storages exactly where the originals do."""

    def __init__(self):
        self._tensors = {}
        self._storages = {}

    def __call__(self, tree):
        return tree_map(self._copy, tree)

    def _copy(self, leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in self._tensors:
            self._tensors[id(leaf)] = (leaf, self._copy_tensor(leaf))
        return self._tensors[id(leaf)][1]

    def _copy_tensor(self, tensor):
        with torch.no_grad():
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not _is_plain(tensor):
                return tensor.detach().clone().requires_grad_(tensor.requires_grad)
            storage = tensor.untyped_storage()
            if storage._cdata not in self._storages:
                self._storages[storage._cdata] = (storage, storage.clone())
            copy = torch.empty(0, dtype=tensor.dtype)
            copy.set_(self._storages[storage._cdata][1], tensor.storage_offset(), tensor.size(), tensor.stride())
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(copy, requires_grad=tensor.requires_grad)
        return copy.requires_grad_(tensor.requires_grad)


def _is_plain(tensor):
    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
    )
