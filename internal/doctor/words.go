package doctor

import "strings"

// words are texts that name nobody, of all fields that are one of a few: systems, drivers, file systems, errors, figures.
var words = append(strings.Fields(`
	linux windows darwin amd64 arm64 riscv64
	ubuntu debian fedora rhel rocky almalinux centos arch manjaro nixos pop linuxmint opensuse-leap opensuse-tumbleweed sles alpine amzn gentoo azurelinux mariner ol kali
	docker podman kubernetes lxc apptainer unknown
	nvidia nvidia_uvm nvidia_modeset nvidia_drm nvidia_peermem gdrdrv nouveau nova nova_core vfio-pci vfio_pci nvidiafb i915 xe amdgpu radeon ast mgag200 virtio-pci virtio_gpu
	bochs-drm vmwgfx vboxvideo qxl hyperv_drm simple-framebuffer panfrost v3d vc4 msm tegra habanalabs
	nvidia-uvm nvidia-caps nvidia-nvswitch nvidia-nvlink nvidia-caps-imex-channels nvidia-frontend nvidiactl
	none integrity confidentiality kmsg file ok slow
	EPERM ENOENT EIO ENXIO EACCES EBUSY ENODEV EINVAL ENOTTY ENOSPC EROFS ENOMEM EAGAIN ENOTDIR EMFILE ENOSYS
	LD_LIBRARY_PATH cache default driver
	init card peers fault killed aborted
	correctable nonfatal fatal nofile memlock as nproc stack
	acpi-cpufreq intel_pstate intel_cpufreq amd-pstate amd-pstate-epp cppc_cpufreq performance powersave schedutil ondemand conservative userspace
	shm tmp home work
	tmpfs nfs nfs4 ext4 xfs btrfs overlay cifs smb2 ceph fuse 9p zfs gpfs afs lustre ramfs virtiofs ntfs apfs
	R S D Z T t I X
	futex_wait futex_wait_queue poll_schedule_timeout do_wait ep_poll uvm_va_block pipe_read nfs_wait_bit_killable io_schedule hrtimer_nanosleep
	device op gradient devices add matmul kernels close cpu cuda sim registry metal drm wsl
	FASTEST_FIRST PCI_BUS_ID LAZY EAGER INFO WARN TRACE DETAIL OFF VERSION LOC NVL PIX PXB PHB SYS
	compute utility graphics video display compat32 ngx all
	iommu intel_iommu amd_iommu pci pcie_aspm nokaslr nomodeset nouveau.modeset rd.driver.blacklist modprobe.blacklist module_blacklist vfio-pci.ids pcie_acs_override
	nvidia-drm.modeset lockdown pt on off noacs realloc nomsi downstream multifunction 0 1
	QEMU Supermicro ASUS Lenovo HP HPE Xen GIGABYTE MSI Google NVIDIA
	env platform bus kernel nodes libraries limits places network services processes nvml
	wddm vulkan
	desktop python macos torch jax tensorflow cpu rocm xpu metal venv conda base wheel source pip uv x86_64 x86 universal
	nvlddmkm BasicDisplay igfx igfxn amdwddmg amdkmdag model`), "segmentation fault", "bus error", "illegal instruction", "floating point exception", "Dell Inc.", "Amazon EC2", "Microsoft Corporation", "VMware, Inc.", "Apple Inc.")

// The kinds of events, the names of figures and of results are words too.
func init() {
	words = append(words, EventKinds...)
	words = append(words, figureKeys...)
	words = append(words, resultNames...)
}

// figureKeys are the figures of a card that leave in a bundle.
var figureKeys = []string{keyTotal, keyUsed, keyFree, keyReserved, keyUtilization, keyPowerLimit, keyPowerUsual, keyTemperature, keySlowdownAt, keyClock, keyClockMax, keyGen, keyGenMax,
	keyWidth, keyWidthMax, keyECC, keyECCPending, keyECCErrors, keyMIG, keyMIGPending, keyMode, keyPersistence, keyDisplay, keyRetiredSBE, keyRetiredDBE, keyRetiring, keyRemapped, keyRemapping,
	keyRemapFailed, keyVirtual, keyFabric, keyFabricCode, keyPowerHeld, keyHeatHeld, keyPowerShare, keyHeatShare, keyLicensed}

// resultNames are those of NVML and CUDA that a start may give.
var resultNames = strings.Fields(`
	NVML_SUCCESS NVML_ERROR_UNINITIALIZED NVML_ERROR_NOT_SUPPORTED NVML_ERROR_NO_PERMISSION NVML_ERROR_INSUFFICIENT_POWER NVML_ERROR_DRIVER_NOT_LOADED NVML_ERROR_TIMEOUT NVML_ERROR_IRQ_ISSUE
	NVML_ERROR_LIBRARY_NOT_FOUND NVML_ERROR_FUNCTION_NOT_FOUND NVML_ERROR_CORRUPTED_INFOROM NVML_ERROR_GPU_IS_LOST NVML_ERROR_RESET_REQUIRED NVML_ERROR_OPERATING_SYSTEM
	NVML_ERROR_LIB_RM_VERSION_MISMATCH NVML_ERROR_NOT_READY NVML_ERROR_GPU_NOT_FOUND NVML_ERROR_UNKNOWN
	CUDA_SUCCESS CUDA_ERROR_OUT_OF_MEMORY CUDA_ERROR_NOT_INITIALIZED CUDA_ERROR_STUB_LIBRARY CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER CUDA_ERROR_DEVICE_UNAVAILABLE CUDA_ERROR_NO_DEVICE
	CUDA_ERROR_INVALID_DEVICE CUDA_ERROR_DEVICE_NOT_LICENSED CUDA_ERROR_ECC_UNCORRECTABLE CUDA_ERROR_NVLINK_UNCORRECTABLE CUDA_ERROR_JIT_COMPILER_NOT_FOUND CUDA_ERROR_UNSUPPORTED_PTX_VERSION
	CUDA_ERROR_JIT_COMPILATION_DISABLED CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND CUDA_ERROR_SHARED_OBJECT_INIT_FAILED CUDA_ERROR_OPERATING_SYSTEM CUDA_ERROR_NOT_PERMITTED
	CUDA_ERROR_SYSTEM_NOT_READY CUDA_ERROR_SYSTEM_DRIVER_MISMATCH CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE CUDA_ERROR_MPS_CONNECTION_FAILED CUDA_ERROR_MPS_RPC_FAILURE
	CUDA_ERROR_MPS_SERVER_NOT_READY CUDA_ERROR_MPS_MAX_CLIENTS_REACHED CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED CUDA_ERROR_MPS_CLIENT_TERMINATED CUDA_ERROR_UNKNOWN`)

// parameterNames are parameters of the driver whose values are numbers.
var parameterNames = strings.Fields(`EnableGpuFirmware RegistryDwords RegistryDwordsPerDevice RmProfilingAdminOnly DeviceFileMode DeviceFileGID DeviceFileUID ModifyDeviceFiles
	CoherentGPUMemoryMode PreserveVideoMemoryAllocations DynamicPowerManagement EnableMSI EnableResizableBar EnablePCIeGen3 OpenRmEnableUnsupportedGpus`)

// makersWords are words of the names of cards and processors.
var makersWords = strings.Fields(`NVIDIA GeForce RTX GTX TITAN Titan Tesla Quadro Graphics Device PCIe PCIE SXM NVL Ti SUPER Super Laptop GPU Ada Generation Max Q D Blackwell Server Edition
	Workstation Jetson Orin Thor Xavier Intel Intel(R) Arc Iris Xe UHD AMD Radeon Pro Apple M1 M2 M3 M4 M5 EPYC Ryzen Threadripper Xeon(R) Core(TM) Processor Core CPU Gold Silver Platinum
	i3 i5 i7 i9 Neoverse Ultra Microsoft Basic Render Driver Hyper V Video with`)

// libraryStems are NVIDIA's libraries.
var libraryStems = strings.Fields(`libcuda libnvidia-ml libnvidia-ptxjitcompiler libnvidia-nvvm libcudart libcublas libcublasLt libcudnn libnccl libnvrtc libnvJitLink libcufft libcurand libcusolver libcusparse
	libc libm libdl libpthread librt libgcc_s ld-linux-x libstdc++`)

// folderWords are parts of folders that every system has.
var folderWords = strings.Fields(`lib lib64 lib32 usr local opt x86_64-linux-gnu aarch64-linux-gnu stubs compat wsl drivers nvidia current targets x86_64-linux sbsa-linux run opengl-driver var lib snapd gl tegra
	conda site-packages nvidia cuda_runtime cublas cudnn nccl nvjitlink cuda_nvrtc`)
