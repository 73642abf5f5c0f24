package errortext

import (
	"strings"
	"testing"
)

// TestAMDIsNotToldNVIDIA: with a text of AMD's stack before it, no row's finding names a tool or switch of NVIDIA.
func TestAMDIsNotToldNVIDIA(t *testing.T) {
	n := 0
	for _, b := range blocks(t) {
		if !b.yes {
			continue
		}
		found, _ := judged("torch 2.5.1+rocm6.2\n"+b.text, b.sizes)
		for _, f := range found {
			n++
			if bad := nvidiaTools.FindString(f.Fix + " " + f.DisprovedBy); bad != "" {
				t.Errorf("%s: %s names %q: %s; %s", b.where, f.Name, bad, f.Fix, f.DisprovedBy)
			}
		}
	}
	if n < len(Rows()) {
		t.Errorf("only %d findings", n)
	}
	for text, want := range map[string]string{
		"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.98 GiB of which 20.00 MiB is free. Of the allocated memory 17.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.": "PYTORCH_HIP_ALLOC_CONF",
		"RuntimeError: HIP error: out of memory\n": "rocm-smi while it runs",
		"RuntimeError: HIP error: an illegal memory access was encountered\nHIP kernel errors might be asynchronously reported": "AMD_SERIALIZE_KERNEL",
		"Memory access fault by GPU node-1 (Agent handle: 0x5581b0) on address 0x7f11f1c00000. Reason: Unknown.":                "AMD_SERIALIZE_KERNEL",
		"RuntimeError: CUDA error: an illegal memory access was encountered":                                                    "CUDA_LAUNCH_BLOCKING",
	} {
		found, _ := judged(text, Sizes{})
		if len(found) == 0 || !strings.Contains(found[0].Fix, want) {
			t.Errorf("%q: %+v", text, found)
		}
	}
}
