package errortext

import (
	"strings"
	"testing"
)

// TestTitles: what is said of a text has its parts, and only those.
func TestTitles(t *testing.T) {
	for text, want := range map[string]string{
		"ResourceExhaustedError: OOM when allocating tensor with shape[64,256,192,192] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]": "TensorFlow had no room for a float tensor of shape [64,256,192,192]",
		"ResourceExhaustedError: OOM when allocating tensor with shape[] and type bfloat16":                                                                                               "TensorFlow had no room for a bfloat16 tensor of shape []",
		"XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.":                                                                                   "JAX asked for 4.44 GiB, and the card had no such piece",
		"RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 68719476736 bytes. Error":                              "it is the host's memory that ran out, not the card's: 64.0 GiB were refused",
	} {
		found, _ := judged(text, Sizes{})
		if len(found) != 1 || found[0].Title != want {
			t.Errorf("%q: %+v, want %q", text, found, want)
		}
	}
}

// TestAssertionIsToldOnce: the error that follows a kernel's failed check is told only where no line names the check.
func TestAssertionIsToldOnce(t *testing.T) {
	const check = "Indexing.cu:1231: indexSelectSmallIndex: block: [31,0,0], thread: [29,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
	const after = "RuntimeError: CUDA error: device-side assert triggered\n"
	for text, want := range map[string]string{check + check + after: "index-out-of-range", after: "device-assert"} {
		found, _ := judged(text, Sizes{})
		var names []string
		for _, f := range Merged(found) {
			names = append(names, f.Name)
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%q: %v, want %s", text, names, want)
		}
	}
}

// TestFullCardBeforeCrumbs: a full card is told before some MiB that are reserved and not in use.
func TestFullCardBeforeCrumbs(t *testing.T) {
	found, _ := judged("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.17 GiB total capacity; 10.62 GiB already allocated; 832.00 KiB free; 10.66 GiB reserved in total by PyTorch)", Sizes{})
	if len(found) != 2 || found[0].Rule != "R11" || found[1].Rule != "O04" {
		t.Errorf("%+v", found)
	}
}

// TestFixKnowsTheVersion: expandable segments are of PyTorch 2.1; the versions before it, told by the message's form, end with
// an error where they are set.
func TestFixKnowsTheVersion(t *testing.T) {
	for text, want := range map[string]string{
		"CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 17.70 GiB already allocated; 1.03 GiB free; 21.70 GiB reserved in total by PyTorch)":                                                                                                                                      "max_split_size_mb:512 ",
		"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.03 GiB is free. Including non-PyTorch memory, this process has 22.5 GiB memory in use. Of the allocated memory 17.70 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated.": "expandable_segments:True ",
	} {
		found, _ := judged(text, Sizes{})
		if len(found) == 0 || found[0].Rule != "O04" || !strings.HasPrefix(found[0].Fix, "PYTORCH_CUDA_ALLOC_CONF="+want) {
			t.Errorf("%s: %+v", text, found)
		}
	}
}
