// Package ledger lists what the simulated GPU assumes where NVIDIA's documents say nothing, or leave room. Each
// assumption has a probe: a kernel whose answer shows it, so that one run on a card tells which hold there.
//
// The package is data and imports nothing of the module. Probes are PTX 7.4 for sm_80 and need no more than loading a
// module, two buffers and a launch.
package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Probe is an assumption and the launch that shows whether it holds.
type Probe struct {
	ID      string // stable: recordings name it
	Assumes string // a sentence
	PTX     string // a module with the kernel "probe(.param .u64 in, .param .u64 out)"
	Blocks  int    // the grid has one dimension
	Threads int    // and so has a block
	In      []byte // what "in" points to
	Out     int    // bytes that "out" points to, zero before the launch; a multiple of 4
	// Answer is what the simulator writes to out, as words. It is nil where any answer that Judge accepts will do.
	Answer []uint32
	// Judge says why an answer contradicts the assumption; nil means that it must equal Answer.
	Judge func(out []uint32) error
}

// Check is nil if an answer agrees with the assumption.
func (p *Probe) Check(out []uint32) error {
	if p.Judge != nil {
		return p.Judge(out)
	}
	if len(out) != len(p.Answer) {
		return fmt.Errorf("ledger: %s has %d words, not %d", p.ID, len(out), len(p.Answer))
	}
	for i, v := range out {
		if v != p.Answer[i] {
			return fmt.Errorf("ledger: %s: word %d is %#08x, assumed is %#08x; %s", p.ID, i, v, p.Answer[i], p.Assumes)
		}
	}
	return nil
}

// Probes lists all probes in the order of their subjects.
func Probes() []*Probe {
	all := slices.Concat(floats(), conversions(), integers(), approximations(), tensor(), memory(), warps())
	known := readAnswers(tableText())
	for _, p := range all {
		if p.Judge == nil {
			p.Answer = known[p.ID]
		}
	}
	return all
}

// readAnswers reads lines "id word word …" with hexadecimal words; "word*n" stands for n of them.
func readAnswers(text string) map[string][]uint32 {
	known := map[string][]uint32{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		words := []uint32{}
		for _, w := range f[1:] {
			w, times, _ := strings.Cut(w, "*")
			v, err := strconv.ParseUint(w, 16, 32)
			n, _ := strconv.Atoi(times)
			if err == nil {
				words = append(words, slices.Repeat([]uint32{uint32(v)}, max(n, 1))...)
			}
		}
		known[f[0]] = words
	}
	return known
}

// FormatAnswer is a line that readAnswers reads, without its end.
func FormatAnswer(id string, out []uint32) string {
	var b strings.Builder
	b.WriteString(id)
	for i := 0; i < len(out); {
		n := 1
		for i+n < len(out) && out[i+n] == out[i] {
			n++
		}
		fmt.Fprintf(&b, " %x", out[i])
		if n > 1 {
			fmt.Fprintf(&b, "*%d", n)
		}
		i += n
	}
	return b.String()
}
