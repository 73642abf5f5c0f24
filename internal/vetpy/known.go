package vetpy

import "strings"

func named(t traits, names ...string) map[string]traits {
	m := make(map[string]traits, len(names))
	for _, n := range names {
		m[n] = t
	}
	return m
}

// lastName is what of a path stands behind its last point.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// losses of torch.nn.functional.
var losses = named(isGraph, "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
	"binary_cross_entropy_with_logits", "kl_div", "ctc_loss", "cosine_embedding_loss", "triplet_margin_loss", "margin_ranking_loss",
	"hinge_embedding_loss", "gaussian_nll_loss", "poisson_nll_loss", "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss",
	"multilabel_soft_margin_loss", "triplet_margin_with_distance_loss", "linear_cross_entropy")

// factories make tensors where they are told to, on the host without device=.
var factories = named(isTensor, "zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "logspace",
	"eye", "tensor", "as_tensor", "normal", "bernoulli", "tril_indices", "triu_indices")

// optimizers outside of torch.optim that training programs import by these names.
var optimizers = named(isOptimizer, "AdamW", "Adam", "SGD", "Lion", "LAMB", "Adafactor", "FusedAdam", "FusedLAMB", "AdamW8bit", "Adam8bit",
	"PagedAdamW", "PagedAdamW8bit", "PagedAdamW32bit", "Ranger", "RAdam", "RMSprop", "LARS", "Shampoo", "SOAP", "Muon", "AdaBelief",
	"ZeroRedundancyOptimizer")

// drops are the methods after which there is no graph, and what is left.
var drops = map[string]traits{
	"item": isNumber, "tolist": isNumber, "detach": isTensor, "numpy": isNumber, "detach_": isTensor, "argmax": isTensor, "argmin": isTensor,
	"argsort": isTensor, "size": isNumber, "dim": isNumber, "numel": isNumber, "eq": isTensor, "ne": isTensor, "gt": isTensor, "lt": isTensor,
	"ge": isTensor, "le": isTensor, "nonzero": isTensor, "long": isTensor, "int": isTensor, "bool": isTensor, "isnan": isTensor, "isfinite": isTensor, "isinf": isTensor, "any": isTensor,
	"all": isTensor, "sign": isTensor, "equal": isNumber, "shape": isNumber, "type": isTensor, "__len__": isNumber,
}

// reads are the methods by which the host waits for a value.
var reads = map[string]bool{"item": true, "tolist": true, "numpy": true, "cpu": true, "nonzero": true}

// pathTraits are those of what a call of an imported name gives; 0 where it is not known.
func pathTraits(path string) traits {
	last := lastName(path)
	switch {
	case strings.HasPrefix(path, "torch.optim.lr_scheduler.") || strings.HasPrefix(last, "get_") && strings.HasSuffix(last, "_schedule_with_warmup") ||
		last == "get_scheduler":
		return isScheduler
	case strings.HasPrefix(path, "torch.optim.swa_utils."):
		return isModule
	case strings.HasPrefix(path, "torch.optim.") && last != strings.ToLower(last):
		return isOptimizer
	case last == "GradScaler" || last == "ShardedGradScaler":
		return isScaler
	case last == "DataLoader" || last == "StatefulDataLoader":
		return isLoader
	case last == "DistributedSampler":
		return isSampler
	case path == "torch.nn.Parameter" || path == "torch.nn.parameter.Parameter":
		return isGraph | isParameter
	case strings.HasPrefix(path, "torch.nn.functional."):
		return functional(last)
	case strings.HasPrefix(path, "torch.nn.utils."), strings.HasPrefix(path, "torch.nn.init."):
		return 0
	case strings.HasPrefix(path, "torch.nn.") && strings.HasSuffix(last, "Loss"):
		return isCriterion
	case strings.HasPrefix(path, "torch.nn.") && last != strings.ToLower(last):
		return isModule
	case strings.HasPrefix(path, "torchvision.models.") || strings.HasPrefix(path, "timm.create_model"):
		return isModule
	case path == "torch.compile", path == "torch.jit.script", path == "torch.jit.load", path == "torch.hub.load":
		return isModule
	case strings.HasPrefix(path, "torch.") && (factories[last] != 0 || strings.HasSuffix(last, "Tensor")) && strings.Count(path, ".") == 1:
		return isTensor
	case path == "torch.from_numpy":
		return isTensor
	case isClockCall(path):
		return isClock
	case path == "deepspeed.initialize":
		return isEngine
	case optimizers[last] != 0 && !strings.HasPrefix(path, "torch.nn."):
		return isOptimizer
	}
	return 0
}

// functional are the traits of what a function of torch.nn.functional gives.
func functional(name string) traits {
	switch {
	case losses[name] != 0:
		return isGraph
	case name == "softmax":
		return isOutput | isSoftmax
	case name == "sigmoid":
		return isOutput | isSigmoid
	case name == "one_hot":
		return isTensor
	}
	return isOutput
}

func isClockCall(path string) bool {
	switch path {
	case "time.time", "time.perf_counter", "time.monotonic", "time.time_ns", "time.perf_counter_ns", "time.process_time", "timeit.default_timer",
		"datetime.datetime.now", "datetime.now":
		return true
	}
	return false
}

// lossPath tells whether a call computes a loss.
func lossPath(path string) bool {
	return strings.HasPrefix(path, "torch.nn.functional.") && losses[lastName(path)] != 0
}

// makes matches the names of functions that make, and are not, what they name.
var makes = pattern(`^(get|build|make|create|load|init|setup|prepare|define|construct|new|train|eval|evaluate|test|save|run|wrap|move|print|count)_.*(model|net|network)$`)

// nameTraits are what a name alone says of a parameter that nobody in the file gives. They count for what is harmless to
// believe: the methods that are called on it say more.
func nameTraits(name string) traits {
	n := strings.ToLower(name)
	switch {
	case len(name) > 1 && n[0] != name[0], (strings.HasSuffix(name, "model") || strings.HasSuffix(name, "net") || strings.HasSuffix(name, "network")) && makes().MatchString(name): // a class, or what makes one
		return 0
	case n == "optimizer" || n == "optim" || n == "opt" || strings.HasSuffix(n, "_optimizer") || strings.HasPrefix(n, "optimizer_") || strings.HasPrefix(n, "optim_"):
		return isOptimizer
	case n == "scheduler" || n == "lr_scheduler" || n == "sched" || strings.HasSuffix(n, "_scheduler"):
		return isScheduler
	case n == "scaler" || n == "grad_scaler":
		return isScaler
	case n == "model" || n == "net" || n == "network" || strings.HasSuffix(n, "_model") || strings.HasSuffix(n, "_net") || n == "encoder" || n == "decoder" ||
		n == "generator" || n == "discriminator" || n == "ddp_model" || n == "student" || n == "teacher" || n == "actor" || n == "critic" || n == "backbone" ||
		n == "unet" || n == "rnn" || n == "lstm" || n == "gru" || n == "cell" || n == "netg" || n == "netd":
		return isModule
	case name == "G" || name == "D":
		return isModule
	case n == "criterion" || n == "crit" || n == "loss_fn" || n == "loss_func" || n == "loss_function" || n == "criteria":
		return isCriterion
	case strings.HasSuffix(n, "loader") || strings.HasSuffix(n, "dataloader") || n == "train_dl" || n == "valid_dl" || n == "test_dl" || n == "val_dl":
		return isLoader
	}
	return 0
}
