package libcuda

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// candidates lists the libraries to try: that of PathEnv only if it is set, else those where drivers put theirs.
func candidates() ([]string, error) {
	if path := os.Getenv(PathEnv); path != "" {
		if !filepath.IsAbs(path) {
			return nil, badPath(fmt.Sprintf("%s=%q is not an absolute path", PathEnv, path))
		}
		return []string{path}, nil
	}
	if runtime.GOOS == "windows" {
		return []string{filepath.Join(os.Getenv("SystemRoot"), "System32", "nvcuda.dll")}, nil
	}
	_, err := os.Stat("/dev/dxg")
	return onLinux(runtime.GOARCH, err == nil, glob), nil
}

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern) // the patterns are well-formed
	return paths
}

// onLinux: under WSL its own library must win over any that a package installed, which cannot work there. Then the
// loader's path (LD_LIBRARY_PATH, ldconfig), which containers and distributions set up, then folders that it may lack.
func onLinux(arch string, wsl bool, glob func(string) []string) []string {
	const soname, inWSL = "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"
	paths := []string{soname, "libcuda.so", inWSL}
	if wsl {
		paths = []string{inWSL, soname, "libcuda.so"}
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
