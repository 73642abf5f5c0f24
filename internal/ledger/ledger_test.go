package ledger

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// simulate runs a probe on the simulator.
func simulate(t *testing.T, p *Probe, o gpusim.Options) []uint32 {
	t.Helper()
	m, err := ptx.Parse(p.PTX)
	if err != nil {
		t.Errorf("%s: %v\n%s", p.ID, err, p.PTX)
		return nil
	}
	for _, err := range ptx.Check(m) {
		t.Errorf("%s: %v", p.ID, err)
	}
	card := gpusim.A100()
	if m.Target.SM > 80 {
		card = gpusim.NewCard("Hopper", 80<<30, 132, [2]int{9, 0})
	}
	d := gpusim.NewDevice(card, false)
	prog, err := d.Load(m)
	if err != nil {
		t.Errorf("%s: %v", p.ID, err)
		return nil
	}
	in, out := buffer(t, d, p.In), buffer(t, d, make([]byte, p.Out))
	params := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, in), out)
	if _, err := d.Launch(prog.Kernel("probe"), [3]int{p.Blocks, 1, 1}, [3]int{p.Threads, 1, 1}, 0, params, o); err != nil {
		t.Errorf("%s: %v", p.ID, err)
		return nil
	}
	b := make([]byte, p.Out)
	if err := d.Read(b, out); err != nil {
		t.Fatal(err)
	}
	words := make([]uint32, p.Out/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return words
}

func buffer(t *testing.T, d *gpusim.Device, data []byte) uint64 {
	addr, err := d.Alloc(max(len(data), 16), "buffer")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(addr, data); err != nil {
		t.Fatal(err)
	}
	return addr
}

// TestProbes runs all probes on the simulator, which must give the answers that the ledger has.
func TestProbes(t *testing.T) {
	probes := Probes()
	if len(probes) < 100 {
		t.Errorf("%d probes", len(probes))
	}
	var lines []string
	seen := map[string]bool{}
	for _, p := range probes {
		if seen[p.ID] || p.Assumes == "" || strings.ContainsAny(p.ID, " *") || p.Out%4 != 0 || p.Threads < 1 || p.Threads > 1024 {
			t.Errorf("%+v", p)
		}
		seen[p.ID] = true
		out := simulate(t, p, gpusim.Options{})
		if p.Judge == nil {
			lines = append(lines, FormatAnswer(p.ID, out))
		}
		if p.Answer == nil && p.Judge == nil {
			t.Errorf("%s has no answer", p.ID)
		} else if err := p.Check(out); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(lines)
	testutil.Golden(t, "answers.txt", []byte(strings.Join(lines, "\n")+"\n"))
}

// TestAnswers: what FormatAnswer writes is read again, and Check sees each word.
func TestAnswers(t *testing.T) {
	want := []uint32{1, 1, 1, 0, 0xffffffff, 7, 7}
	line := FormatAnswer("x", want)
	if line != "x 1*3 0 ffffffff 7*2" || !slices.Equal(readAnswers(line + "\n\n")["x"], want) {
		t.Error(line, readAnswers(line))
	}
	p := &Probe{ID: "x", Answer: want}
	if err := p.Check(want); err != nil {
		t.Error(err)
	}
	for i := range want {
		bad := slices.Clone(want)
		bad[i]++
		if p.Check(bad) == nil {
			t.Error("word", i)
		}
	}
	if p.Check(want[:6]) == nil {
		t.Error("a short answer")
	}
	if rising([]uint32{1, 0, 2, 0, 2, 0}) != nil || rising([]uint32{1, 0, 1, 0, 1, 0}) == nil || rising([]uint32{2, 0, 1, 0, 3, 0}) == nil || rising(nil) == nil {
		t.Error("rising")
	}
}
