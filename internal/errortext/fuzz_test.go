package errortext

import (
	"strings"
	"testing"
)

func FuzzText(f *testing.F) {
	f.Add("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.91 GiB is free. Including non-PyTorch memory, this process has 58.31 GiB memory in use. Of the allocated memory 51.75 GiB is allocated by PyTorch, and 6.05 GiB is reserved\nby PyTorch but unallocated.", 8)
	f.Add("RuntimeError: CUDA out of memory. Tried to allocate 1.00 MiB (GPU 0; 3.95 GiB total capacity; 1.72 GiB already allocated; 354.88 MiB free; 2.46 GiB reserved in total by PyTorch)", 0)
	f.Add("\x1b[31mDefaultCPUAllocator: can't allocate memory: you tried to allocate 99999999999999999999 bytes\r\nMPS backend out of memory (MPS allocated: 5.56 GB, other allocations: 1.10 GB, max allowed: 6.80 GB)", 1<<30)
	f.Fuzz(func(t *testing.T, text string, size int) {
		found, _ := judged(text, Sizes{Batch: size, Context: size, Vocab: size, Heads: size})
		for _, f := range Merged(found) {
			if f.Rule == "" || f.Title == "" || f.Fix == "" || f.DisprovedBy == "" {
				t.Fatalf("%+v", f)
			}
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add("a\r\nb\rc\n\x1b[1;31md\x1b\xff\x00")
	f.Fuzz(func(t *testing.T, text string) {
		l := NewLines(strings.NewReader(text))
		last := int64(0)
		for {
			line, n, ok := l.Next()
			if !ok {
				break
			}
			if n < last || n > int64(strings.Count(text, "\n"))+1 {
				t.Fatalf("line %d behind %d", n, last)
			}
			last = n
			if strings.ContainsAny(line, "\r\n\x00\x1b") || len(line) > 3*longestLine {
				t.Fatalf("%q", line)
			}
		}
	})
}
