"""The names of PyTorch that `warpline torch` must answer: python bench/pytorch/names.py > internal/torchcall/names.txt

Of each package what it exports (`__all__`, or else what is public and callable in `dir`), of classes that people call
methods of also these and their attributes; of `torch` itself the functions that are documented.
"""

import inspect

import torch
import torch.cuda.memory
import torch.nn.attention.bias
import torch.nn.attention.flex_attention
import torch.nn.utils.parametrizations
import torch.nn.utils.parametrize
import torch.nn.utils.prune
import torch.nn.utils.rnn
import torch.optim.swa_utils
import torch.utils.checkpoint

PACKAGES = [
    torch.nn,
    torch.nn.functional,
    torch.nn.init,
    torch.nn.utils,
    torch.nn.utils.rnn,
    torch.nn.utils.parametrizations,
    torch.nn.utils.parametrize,
    torch.nn.utils.prune,
    torch.optim,
    torch.optim.lr_scheduler,
    torch.optim.swa_utils,
    torch.utils.data,
    torch.cuda,
    torch.cuda.amp,  # warpline: ok V11
    torch.cuda.nvtx,
    torch.amp,
    torch.linalg,
    torch.special,
    torch.fft,
]

# What instances have beside what dir of the class says.
CLASSES = {
    "torch.nn.Module": (torch.nn.Module, ["training"]),
    "torch.optim.Optimizer": (torch.optim.Optimizer, ["defaults", "param_groups", "state"]),
    "torch.optim.lr_scheduler.LRScheduler": (torch.optim.lr_scheduler.LRScheduler, ["last_epoch"]),
    "torch.amp.GradScaler": (torch.amp.GradScaler, []),
    "torch.cuda.Stream": (torch.cuda.Stream, []),
    "torch.cuda.Event": (torch.cuda.Event, []),
    "torch.cuda.CUDAGraph": (torch.cuda.CUDAGraph, []),
    "torch.Tensor": (torch.Tensor, []),
}

# Of other packages, of torch's classes, and what is private and in every guide to memory nevertheless.
MORE = """
torch.autocast torch.device torch.enable_grad torch.inference_mode torch.no_grad
torch.autograd.Function torch.autograd.grad torch.autograd.gradcheck torch.autograd.set_detect_anomaly
torch.autograd.detect_anomaly torch.autograd.backward torch.autograd.graph.save_on_cpu
torch.autograd.functional.jvp torch.autograd.functional.vjp torch.autograd.functional.hvp torch.autograd.functional.vhp
torch.autograd.functional.jacobian torch.autograd.functional.hessian
torch.func.jvp torch.func.vjp torch.func.grad torch.func.jacrev torch.func.jacfwd torch.func.hessian
torch.nn.attention.bias.causal_lower_right torch.nn.attention.flex_attention.flex_attention
torch.utils.checkpoint.checkpoint torch.utils.checkpoint.checkpoint_sequential
torch.nn.modules.module.register_module_forward_hook
torch.fft.hfft2 torch.fft.hfftn torch.fft.ihfft2 torch.fft.ihfftn
torch.cuda.memory._record_memory_history torch.cuda.memory._dump_snapshot torch.cuda.memory._snapshot
torch.cuda.memory._set_allocator_settings
""".split()


def public(package):
    for name in getattr(package, "__all__", None) or dir(package):
        thing = getattr(package, name)
        if name.startswith("_") or inspect.ismodule(thing) or not callable(thing) or thing is torch.Tensor:
            continue
        home = getattr(thing, "__module__", None) or "torch"
        if home.startswith("torch"):
            yield name


def attributes(cls, more):
    inherited = set(dir(object)) | set(dir(int))
    return [n for n in dir(cls) if not n.startswith("_") and (cls is torch.Tensor or n not in inherited)] + more


def functions():
    for name in dir(torch):
        thing = getattr(torch, name)
        if name.startswith("_") or inspect.isclass(thing) or inspect.ismodule(thing) or not callable(thing):
            continue
        if (thing.__doc__ or "").strip() and (getattr(thing, "__module__", None) or "torch").startswith("torch"):
            yield name


def main():
    names = set(MORE)
    for name in MORE:
        eval(name)  # it exists
    for package in PACKAGES:
        names.update(f"{package.__name__}.{name}" for name in public(package))
    for path, (cls, more) in CLASSES.items():
        names.update(f"{path}.{name}" for name in attributes(cls, more))
    names.update(f"torch.{name}" for name in functions())
    print(f"# Names of PyTorch {torch.__version__.split('+')[0]} by bench/pytorch/names.py. Do not edit.")
    print("\n".join(sorted(names)))


if __name__ == "__main__":
    main()
