package doctor

import (
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/drivers"
	"github.com/warpline-ml/warpline/internal/finding"
)

const (
	libcuda = "libcuda.so.1"
	libnvml = "libnvidia-ml.so.1"
	libjit  = "libnvidia-ptxjitcompiler.so.1"
)

var libraryRules = []rule{
	{id: "D35", name: "capabilities", step: P6, breaks: true, what: "the container was given the libraries for compute", can: func(f *Facts) bool { return f.contained() && f.loaded() }, saw: (*Facts).sawLibcuda, judge: capabilities},
	{id: "D03", name: "no-libcuda", step: P6, breaks: true, what: "libcuda.so.1 is where the loader looks", can: func(f *Facts) bool { return f.loaded() && f.sawLibraries() }, saw: (*Facts).sawLibcuda, judge: noLibcuda},
	{id: "D03", name: "no-nvml", step: P7, what: "libnvidia-ml.so.1 is where the loader looks", can: func(f *Facts) bool { return f.loaded() && f.sawLibraries() }, saw: func(f *Facts) bool { return f.library(libnvml).Path != "" }, judge: noNVML},
	{id: "D05", name: "stub", step: P6, breaks: true, what: "libcuda is the driver's, no stub", can: func(f *Facts) bool { return f.library(libcuda).Path != "" }, saw: (*Facts).sawSize, judge: stub},
	{id: "D08", name: "forward-compat", step: P6, breaks: true, what: "no package for forward compatibility stands before the driver", can: func(f *Facts) bool { return f.library(libcuda).Path != "" }, saw: (*Facts).noCompat, judge: compat},
	{id: "D04", name: "version-mismatch", step: P6, breaks: true, what: "kernel and libraries are of one driver", can: (*Facts).loaded, saw: (*Facts).oneDriver, judge: mismatch},
	{id: "D06", name: "mixed-set", step: P6, breaks: false, what: "the driver's libraries are of one version", can: (*Facts).loaded, saw: (*Facts).oneSet, judge: mixed},
	{id: "D11", name: "no-jit", step: P6, breaks: true, what: "the compiler of PTX is beside libcuda", can: func(f *Facts) bool { return f.loaded() && f.library(libcuda).Path != "" }, saw: (*Facts).sawJIT, judge: noJIT},
	{id: "D11", name: "jit-cache", step: P6, what: "what the driver compiles is kept", can: func(f *Facts) bool { return f.loaded() }, saw: (*Facts).sawCache, judge: jitCache},
	{id: "D07", name: "driver-too-old", step: P8, breaks: true, what: "the driver is new enough for this program", can: func(f *Facts) bool { return f.CUDA.Version > 0 }, saw: func(f *Facts) bool { return f.Floor > 0 }, judge: tooOld},
	{id: "D07", name: "toolkit-newer", step: P9, what: "the driver is new enough for the toolkits that are installed", can: func(f *Facts) bool { return f.driver() != "" }, saw: (*Facts).sawToolkit, judge: toolkitNewer},
	{id: "D10", name: "ptx-newer", step: P9, what: "the driver compiles what NVRTC makes", can: func(f *Facts) bool { return f.CUDA.Version > 0 && f.library("libnvrtc.so").Path != "" }, saw: func(f *Facts) bool { return cudaNumber(f.library("libnvrtc.so").Version) > 0 }, judge: ptxNewer},
	{id: "D40", name: "compute-libraries", step: P9, what: "each library for compute finds those that it needs", can: func(f *Facts) bool {
		return slices.ContainsFunc(f.Libraries, func(l Library) bool { return isCompute(l.Name) })
	}, saw: (*Facts).sawCompute, judge: computeMissing},
	{id: "D40", name: "shadowed", step: P9, what: "LD_LIBRARY_PATH puts nothing before the libraries that are installed", can: func(f *Facts) bool { return f.Env["LD_LIBRARY_PATH"] != "" }, saw: (*Facts).sawLibraries, judge: shadowed},
}

func capabilities(f *Facts) []ill {
	v, ok := f.Env["NVIDIA_DRIVER_CAPABILITIES"]
	if !f.contained() || f.library(libcuda).Path != "" || !f.node("/dev/nvidiactl").There || f.library(libnvml).Path == "" && !ok || strings.Contains(v, "compute") || v == "all" {
		return nil
	}
	return one("the container was given NVML and not libcuda", []finding.Evidence{value("NVIDIA_DRIVER_CAPABILITIES", v, "NVIDIA_DRIVER_CAPABILITIES is %q, which has no compute", v)},
		"docker run --rm --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ubuntu nvidia-smi", "on the host it lists the cards; then start this container with the same options", finding.High, "libcuda.so.1 is in the container, in a folder that the loader does not know")
}

func noLibcuda(f *Facts) []ill {
	l := f.library(libcuda)
	if l.Path != "" && l.Bits != 32 || len(capabilities(f)) > 0 || len(givenNothing(f)) > 0 {
		return nil
	}
	if l.Path != "" {
		return one("libcuda.so.1 is here for 32-bit programs only", []finding.Evidence{value("path", l.Path, "%s is of %d bits", l.Path, l.Bits)}, install(f), "the whole driver, not only its part for 32-bit programs", finding.High, "ldconfig -p lists a 64-bit libcuda.so.1")
	}
	evidence := []finding.Evidence{value("libcuda", "", "the kernel's half of the driver is %s, and libcuda.so.1 is nowhere that the loader looks", f.Kernel.Driver)}
	switch {
	case f.contained():
		return one("the driver's libraries are not in this container", evidence, "docker run --rm --gpus all ubuntu nvidia-smi", "it takes nvidia-container-toolkit on the host: nodes alone, by --device, bring no libraries", finding.High, "find / -name 'libcuda.so*' finds it in the container")
	case f.Platform.Name == "nixos":
		return one("the driver's libraries are not in /run/opengl-driver/lib", evidence, "sudo nixos-rebuild switch", "with hardware.graphics.enable = true and services.xserver.videoDrivers = [ \"nvidia\" ]", finding.High, "ls /run/opengl-driver/lib/libcuda.so.1 lists it")
	}
	return one("only the kernel's half of the driver is installed", evidence, install(f), "libcuda is in a package of its own on some systems: libcuda1, libnvidia-compute-NNN, nvidia-driver-cuda", finding.High, "find / -name 'libcuda.so*' finds it elsewhere")
}

func noNVML(f *Facts) []ill {
	if f.library(libnvml).Path != "" || f.library(libcuda).Path == "" {
		return nil
	}
	do := install(f)
	if f.contained() {
		do = "docker run --rm --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ubuntu nvidia-smi"
	}
	return gains(one("NVML is missing: nobody can tell what the card does", []finding.Evidence{value("libnvidia-ml", "", "libcuda.so.1 is there, libnvidia-ml.so.1 is not")}, do,
		"health, clocks and memory stay unknown until then", finding.High, "ldconfig -p lists libnvidia-ml.so.1"), "health, clocks and memory that can be seen")
}

// inWSL is where Windows puts its loader of libcuda, which is small as a stub is.
const inWSL = "/usr/lib/wsl/"

// smallest is below any libcuda that is no stub: the driver's has tens of megabytes.
const smallest = 200 << 10

func stub(f *Facts) []ill {
	l := f.library(libcuda)
	inStubs := strings.Contains(l.Path, "/stubs/") || strings.Contains(l.Real, "/stubs/")
	small := l.Size > 0 && l.Size < smallest && !strings.HasPrefix(l.Path, inWSL) && !strings.HasPrefix(l.Real, inWSL) && !f.Platform.DXG
	if !inStubs && !small && !f.cudaCode(34) {
		return nil
	}
	evidence := []finding.Evidence{value("path", l.Path, "the loader takes %s (%s), of %d bytes, by %s", l.Path, l.Real, l.Size, l.Why)}
	if f.cudaCode(34) {
		evidence = append(evidence, value("cuInit", 34, "cuInit gives CUDA_ERROR_STUB_LIBRARY"))
	}
	return one("the loader takes the toolkit's stub for the driver", evidence, `export LD_LIBRARY_PATH=$(printf %s "$LD_LIBRARY_PATH" | tr : '\n' | grep -v stubs | paste -sd:)`,
		"stubs are to link against, never to run with", finding.High, "the file is the driver's own")
}

// datacentre reports whether a card is of the kind that forward compatibility is for.
func datacentre(name string) bool {
	for _, word := range []string{"GeForce", "RTX", "GTX", "TITAN", "Quadro", "NVS"} {
		if strings.Contains(name, word) {
			return false
		}
	}
	return name != ""
}

func compat(f *Facts) []ill {
	l := f.library(libcuda)
	in := strings.Contains(l.Path, "/compat/") || strings.Contains(l.Real, "/compat/")
	other := slices.IndexFunc(f.NVML.Cards, func(c NVMLCard) bool { return !datacentre(c.Name) })
	older := l.Version != "" && f.loaded() && before(l.Version, f.Kernel.Driver)
	if !f.cudaCode(804) && !(in && (other >= 0 || older)) {
		return nil
	}
	evidence := []finding.Evidence{value("path", l.Path, "the loader takes %s by %s, version %s; the kernel has %s", l.Path, l.Why, l.Version, f.Kernel.Driver)}
	if other >= 0 {
		evidence = append(evidence, value("card", f.NVML.Cards[other].Name, "%s is no data-centre card, which that package is for", f.NVML.Cards[other].Name))
	}
	if f.cudaCode(804) {
		evidence = append(evidence, value("cuInit", 804, "cuInit gives CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"))
	}
	return one("a package for forward compatibility stands before the driver, and does not suit it", evidence,
		`export LD_LIBRARY_PATH=$(printf %s "$LD_LIBRARY_PATH" | tr : '\n' | grep -v compat | paste -sd:)`, "what needs the newer CUDA then needs a newer driver: on the host, if this is a container", finding.High, "CUDA starts with the package")
}

// versioned are the driver's own libraries that must be of the kernel's version.
func (f *Facts) versioned() (out []Library) {
	for _, name := range []string{libcuda, libnvml} {
		if l := f.library(name); l.Version != "" && !strings.Contains(l.Real+l.Path, "/compat/") && len(parts(l.Version)) > 1 {
			out = append(out, l)
		}
	}
	return out
}

func mismatch(f *Facts) []ill {
	kernel := f.Kernel.Driver
	if f.Control.Version != "" {
		kernel = f.Control.Version
	}
	var evidence []finding.Evidence
	for _, l := range f.versioned() {
		if l.Version != kernel {
			evidence = append(evidence, value(stem(l.Name), l.Version, "%s is of %s (found by %s), the kernel has %s", l.Real, l.Version, l.Why, kernel))
		}
	}
	if f.nvmlCode(18) {
		evidence = append(evidence, value("nvml", 18, "NVML begins with NVML_ERROR_LIB_RM_VERSION_MISMATCH"))
	}
	if f.cudaCode(803) {
		evidence = append(evidence, value("cuInit", 803, "cuInit gives CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"))
	}
	if logged := f.events(Mismatch); len(logged) > 0 && (evidence != nil || f.CUDA.Asked && !f.CUDA.works()) {
		evidence = append(evidence, value("log", logged[0].Count, "the driver says that a program's libraries are of another version than the module (API mismatch), %d times", logged[0].Count))
	}
	if evidence == nil || f.CUDA.works() && f.NVML.works() {
		return nil
	}
	if f.contained() {
		return one("the container's libraries are of another driver than the host's", evidence, "docker restart CONTAINER", "an image must not bring a driver of its own: take libcuda1 or nvidia-driver out of it", finding.High, "nvidia-smi works in a fresh container")
	}
	if len(f.Holders) > 0 {
		evidence = append(evidence, value("holders", len(f.Holders), "these processes keep the old module in use: %s", list(f.Holders, holderText)))
	}
	return one("the driver was updated, and the kernel has the old one", evidence, "sudo reboot",
		"or end those processes, then sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia; sudo apt-mark hold keeps automatic updates off", finding.High, "cat /proc/driver/nvidia/version has the libraries' version")
}

func mixed(f *Facts) []ill {
	base := f.library(libcuda)
	if base.Version == "" || len(mismatch(f)) > 0 {
		return nil
	}
	var evidence []finding.Evidence
	for _, name := range companions {
		if l := f.library(name); l.Version != "" && l.Version != base.Version {
			evidence = append(evidence, value(stem(name), l.Version, "%s is of %s, libcuda of %s", l.Real, l.Version, base.Version))
		}
	}
	if evidence == nil {
		return nil
	}
	return gains(one("libraries of two drivers are mixed", evidence, install(f), "from one source, after the other has been removed", finding.Medium, "ldconfig -p lists one version of each"), "calls that do not fail with FUNCTION_NOT_FOUND")
}

func noJIT(f *Facts) []ill {
	off := f.Env["CUDA_DISABLE_PTX_JIT"] == "1"
	absent := f.library(libjit).Path == "" && !f.Platform.WSL && !f.Platform.Tegra
	if !off && !absent && !f.cudaCode(221, 223) {
		return nil
	}
	if off {
		return one("the driver is told to compile no PTX", []finding.Evidence{value("CUDA_DISABLE_PTX_JIT", "1", "CUDA_DISABLE_PTX_JIT=1: CUDA gives 223, CUDA_ERROR_JIT_COMPILATION_DISABLED")},
			"unset CUDA_DISABLE_PTX_JIT", "this program's kernels, and those of many others, are PTX", finding.High, "all programs here bring code for the card")
	}
	evidence := []finding.Evidence{value("libnvidia-ptxjitcompiler", "", "libnvidia-ptxjitcompiler.so.1 is not where the loader looks: CUDA gives 221")}
	if f.contained() {
		return one("the driver's compiler of PTX is missing", evidence, "docker run --rm --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ubuntu nvidia-smi", "on the host it lists the cards; then start this container with the same options", finding.High, "the library is beside libcuda, in a folder that the loader does not know")
	}
	return one("the driver's compiler of PTX is missing", evidence, install(f), "the whole driver, its part for compute included", finding.High, "the library is beside libcuda, in a folder that the loader does not know")
}

func jitCache(f *Facts) []ill {
	var evidence []finding.Evidence
	if f.Env["CUDA_CACHE_DISABLE"] == "1" {
		evidence = append(evidence, value("CUDA_CACHE_DISABLE", "1", "CUDA_CACHE_DISABLE=1"))
	}
	if p, ok := f.place("cache"); ok && (p.Writable != nil && !*p.Writable || p.ReadOnly || p.Free > 0 && p.Free < 64<<20) {
		evidence = append(evidence, value("cache", p.Free, "the folder of the driver's cache takes no files: %d bytes free, %s", p.Free, orNone(p.Errno)))
	}
	if evidence == nil {
		return nil
	}
	return gains(one("what the driver compiles is thrown away after each run", evidence, "export CUDA_CACHE_DISABLE=0 CUDA_CACHE_PATH=/var/tmp/cuda-$USER", "", finding.High, "the second start of a program is as slow as the first"), "seconds at each start")
}

func tooOld(f *Facts) []ill {
	if f.Floor == 0 || f.CUDA.Version >= f.Floor {
		return nil
	}
	return one("the driver is too old for this program", []finding.Evidence{value("cuda", f.CUDA.Version, "the driver supports CUDA %s, the kernels need %s", cudaText(f.CUDA.Version), cudaText(f.Floor))},
		install(f), "version 470 or later", finding.High, "nvidia-smi shows a newer CUDA version")
}

// driver is the version of what is loaded, or else of the library.
func (f *Facts) driver() string {
	for _, v := range []string{f.Kernel.Driver, f.NVML.Driver, f.library(libcuda).Version} {
		if v != "" {
			return v
		}
	}
	return ""
}

// toolkitNeeds is the oldest driver for the CUDA runtime that programs find, empty where that is not known.
func (f *Facts) toolkitNeeds() string {
	return drivers.Min(f.library("libcudart.so").Version, f.system())
}

func toolkitNewer(f *Facts) []ill {
	l, need := f.library("libcudart.so"), f.toolkitNeeds()
	if need == "" || drivers.Compare(f.driver(), need) >= 0 || strings.Contains(f.library(libcuda).Path, "/compat/") {
		return nil
	}
	return gains(one("the driver is too old for the CUDA toolkit that programs here find", []finding.Evidence{value("libcudart", l.Version, "%s needs driver %s, this one is %s: programs that use it end with error 35", l.Real, need, f.driver())},
		install(f), "a newer branch; or a toolkit of major version "+cudaText(f.CUDA.Version)+" or older", finding.High, "a program linked with that toolkit runs"), "programs of that toolkit run")
}

func ptxNewer(f *Facts) []ill {
	l := f.library("libnvrtc.so")
	if cudaNumber(l.Version) <= f.CUDA.Version {
		return nil
	}
	return gains(one("PTX that the installed NVRTC makes is newer than this driver compiles", []finding.Evidence{value("libnvrtc", l.Version, "%s is of CUDA %s, the driver of %s: modules end with error 222, unsupported toolchain", l.Real, l.Version, cudaText(f.CUDA.Version))},
		install(f), "a newer driver; or have NVRTC make code for the card (--gpu-architecture=sm_…) in place of PTX", finding.Medium, "a kernel that was compiled here by NVRTC loads"), "kernels compiled at run time load")
}

func computeMissing(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, l := range f.Libraries {
		if isCompute(l.Name) && l.Path != "" && len(l.Missing) > 0 {
			evidence = append(evidence, value(stem(l.Name), strings.Join(l.Missing, " "), "%s needs %s, which the loader does not find", l.Real, strings.Join(l.Missing, ", ")))
		}
	}
	if evidence == nil {
		return nil
	}
	return gains(one("a library for compute lacks others that it needs", evidence, "sudo ldconfig", "after the missing ones are installed, or their folder is in /etc/ld.so.conf.d; packages of pip bring all of a set and need none of the system's", finding.High, "ldd of the library says not found of none"), "programs that use it start")
}

func shadowed(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, l := range f.Libraries {
		for _, o := range l.Others {
			if isCompute(l.Name) && l.Why == "LD_LIBRARY_PATH" && o.Version != l.Version {
				evidence = append(evidence, value(stem(l.Name), l.Version, "%s (%s) stands before %s (%s), by LD_LIBRARY_PATH", l.Path, l.Version, o.Path, o.Version))
			}
		}
	}
	if evidence == nil {
		return nil
	}
	return gains(one("LD_LIBRARY_PATH puts other versions of libraries before those that are installed", evidence, "unset LD_LIBRARY_PATH",
		"PyTorch's wheels too then find other libraries than they were built with (undefined symbol: __nvJitLink…)", finding.Medium, "the program needs just these"), "programs that start, with the libraries that they were built with")
}

func holderText(h Holder) string {
	text := itoa(h.PID)
	if h.Command != "" {
		text += " (" + h.Command + ")"
	}
	return text
}
