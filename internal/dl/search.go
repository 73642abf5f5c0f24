package dl

import (
	"os"
	"path/filepath"
	"runtime"
)

// DriverPaths lists where a library of the NVIDIA driver may be, in the order in which to try: soname is its name on Linux,
// "libcuda.so.1", and dll that on Windows.
func DriverPaths(soname, dll string) []string {
	if runtime.GOOS == "windows" {
		return []string{filepath.Join(os.Getenv("SystemRoot"), "System32", dll)}
	}
	_, err := os.Stat("/dev/dxg")
	return onLinux(soname, runtime.GOARCH, err == nil, glob)
}

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern) // the patterns are well-formed
	return paths
}

// onLinux: under WSL its own library must win over any that a package installed, which cannot work there. Then the
// loader's path (LD_LIBRARY_PATH, ldconfig), which containers and distributions set up, then folders that it may lack.
func onLinux(soname, arch string, wsl bool, glob func(string) []string) []string {
	bare := soname[:len(soname)-len(filepath.Ext(soname))] // without the number of its ABI
	inWSL := "/usr/lib/wsl/lib/" + soname
	paths := []string{soname, bare, inWSL}
	if wsl {
		paths = []string{inWSL, soname, bare}
	}
	for _, dir := range folders[arch] {
		paths = append(paths, dir+"/"+soname)
	}
	for _, dir := range folders[""] {
		paths = append(paths, dir+"/"+soname)
	}
	paths = append(paths, glob("/usr/lib/nvidia-*/"+soname)...)
	return append(paths, "/usr/local/cuda/compat/"+soname)
}

// folders are those of drivers, by architecture and on all.
var folders = map[string][]string{
	"amd64": {"/usr/lib/x86_64-linux-gnu"},
	"arm64": {"/usr/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu/nvidia", "/usr/lib/aarch64-linux-gnu/tegra"}, // Jetson
	"": {
		"/usr/lib64", "/usr/lib64/nvidia",
		"/usr/local/nvidia/lib64", // Kubernetes on Google's systems
		"/run/opengl-driver/lib",  // NixOS
		"/var/lib/snapd/lib/gl",
	},
}
