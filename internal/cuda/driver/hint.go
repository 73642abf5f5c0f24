package driver

const (
	updateDriver = "update the NVIDIA driver to 470 or newer"
	orSimulate   = "; the device sim:0 needs none"
	compiles     = "the program has its kernels as PTX, which the driver compiles: "
)

// Hint says what a person can do about the failure; empty where the package knows nothing.
func (e *Error) Hint() string {
	if h, ok := hintsOf[e.Call][e.Result]; ok {
		return h
	}
	return hints[e.Result]
}

// hintsOf are those of calls in which a result has a meaning of its own.
var hintsOf = map[string]map[Result]string{
	"cuInit": {
		OutOfMemory: "free memory, or raise the limit on address space (ulimit -v) or of the container",
		NotInitialized: "restart the program; if it stays, reload nvidia_uvm, with uvm_disable_hmm=1 " +
			"where the open kernel modules 570 to 580 run",
		NoDevice: "see whether nvidia-smi lists a card; a container must be started with it (--gpus all)" +
			orSimulate,
		Unknown: "load nvidia_uvm (nvidia-modprobe -c 0 -u), or reload it after a suspend; dmesg may say more",
	},
	"cuDevicePrimaryCtxRetain": {
		OutOfMemory: "nvidia-smi tells who holds the card's memory: end that, or take another card with CUDA_VISIBLE_DEVICES",
		// So says NVIDIA of a card in mode prohibited.
		Unknown: "see whether the card's compute mode is Prohibited (nvidia-smi -q -d COMPUTE); nvidia-smi -c 0 lets everybody in; " +
			"else dmesg may say more",
	},
}

var hints = map[Result]string{
	NeedsNewerDriver: updateDriver,
	DeviceUnavailable: "another process may hold the card exclusively (nvidia-smi -q -d COMPUTE): wait for it, or set the compute mode " +
		"back with nvidia-smi -c 0",
	InvalidDevice: "see that CUDA_VISIBLE_DEVICES names cards that nvidia-smi -L lists",
	DeviceNotLicensed: "see that the virtual GPU gets its license (nvidia-smi -q shows the License Status): nvidia-gridd must run and " +
		"reach the license server",
	NoBinaryForGPU: compiles + "the card must have compute capability 7.5 (Turing) or later; CUDA_VISIBLE_DEVICES chooses another",
	InvalidPTX:     "update the NVIDIA driver; if it stays, tell us the message and what warpline check prints",
	CompilerNotFound: compiles + "install its libnvidia-ptxjitcompiler.so.1 in the driver's very version (a package of its own on some " +
		"systems), and start containers with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
	UnsupportedPTXVersion: updateDriver,
	CompilationDisabled:   compiles + "unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT",
	OperatingSystem: "look at the permissions of /dev/nvidia*, the container's device rules and the limits " +
		"(ulimit -a)",
	SystemNotReady: "start nvidia-fabricmanager, in the driver's very version, and wait until it has set up " +
		"the NVSwitches",
	DriverMismatch: "the driver was updated under a running system: reboot, or unload and load its kernel " +
		"modules",
	CompatNotSupported: "take the folder of the forward-compatibility package (cuda/compat) out of " +
		"LD_LIBRARY_PATH, or update the NVIDIA driver",
}
