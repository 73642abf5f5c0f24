package dl

import (
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	installed := func(pattern string) []string {
		if pattern != "/usr/lib/nvidia-*/libcuda.so.1" {
			t.Errorf("pattern %s", pattern)
		}
		return []string{"/usr/lib/nvidia-535/libcuda.so.1"}
	}
	tests := []struct {
		arch  string
		wsl   bool
		order []string
	}{
		{"amd64", false, []string{"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
			"/usr/lib64/libcuda.so.1", "/usr/lib/nvidia-535/libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1"}},
		{"amd64", true, []string{"/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so.1", "libcuda.so"}},
		{"arm64", false, []string{"libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1",
			"/usr/local/nvidia/lib64/libcuda.so.1", "/run/opengl-driver/lib/libcuda.so.1"}},
	}
	for _, test := range tests {
		got := onLinux("libcuda.so.1", test.arch, test.wsl, installed)
		at := -1
		for _, path := range test.order {
			next := slices.Index(got, path)
			if next <= at {
				t.Errorf("%s, wsl %v: %s is at %d, want it after %d in %q", test.arch, test.wsl, path, next, at, got)
			}
			at = next
		}
		if test.arch == "arm64" && slices.Contains(got, "/usr/lib/x86_64-linux-gnu/libcuda.so.1") {
			t.Errorf("folders of another architecture: %q", got)
		}
	}
}
