package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// words writes every instruction that is encoded here, with registers that have each bit set and clear, and then whole
// families.
func words() *file {
	f := new(file)
	ops := []armOp{faddp, bic, fneg, below0, upTo0, widen, widen2, narrow, narrow2, toF16, low16, fmaxv, faddpD, uminv, fmin, fcmeq, fcmge, fcmgt}
	for _, op := range neonOps {
		ops = append(ops, op)
	}
	for _, op := range []armOp{fadd, fsub, fmul, frintn, below0} {
		ops = append(ops, op.doubles())
	}
	for by := 1; by < 32; by++ {
		ops = append(ops, sshr(by))
	}
	for r := range 32 {
		s, t := (7*r+3)%32, (13*r+5)%32
		for _, op := range ops {
			if op.bits != 0 {
				f.arm(op, []int{r, s, t}[:strings.Count(op.text, "%d")]...)
			}
		}
		f.addLane(neon, r, s, t, r%4)
		f.addLane(neon, r, s, t, r/4%4)
		f.addLane(neon.doubles(), r, s, t, r%2)
		f.indexed(r%2 == 0, r, "R"+strconv.Itoa(s%27), "R"+strconv.Itoa(t%27))
	}
	for _, family := range families {
		if family.arm != nil {
			family.arm(f)
		}
	}
	return f
}

// TestWords has clang assemble the text beside each word: the words must be the same.
func TestWords(t *testing.T) {
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("there is no clang-19 to compare with: ", err)
	}
	var source bytes.Buffer
	var want []uint32
	for _, line := range regexp.MustCompile(`WORD \$0x([0-9a-f]{8}) // (.*)`).FindAllStringSubmatch(words().asm.String(), -1) {
		bits, _ := strconv.ParseUint(line[1], 16, 32)
		want = append(want, uint32(bits))
		source.WriteString(line[2] + "\n")
	}
	got := assembled(t, clang, source.Bytes())
	if len(got) != len(want) || len(want) < 2000 {
		t.Fatalf("%d words of %d", len(got), len(want))
	}
	lines := strings.Split(source.String(), "\n")
	for i, w := range want {
		if got[i] != w {
			t.Fatalf("%s is %#08x, not %#08x", lines[i], got[i], w)
		}
	}
}

// assembled returns the words of ARM's assembly.
func assembled(t *testing.T, clang string, source []byte) []uint32 {
	t.Helper()
	folder := t.TempDir()
	in, out := filepath.Join(folder, "a.s"), filepath.Join(folder, "a.o")
	if err := os.WriteFile(in, source, 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(clang, "--target=aarch64-linux-gnu", "-c", in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	object, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	data, err := object.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	list := make([]uint32, len(data)/4)
	if _, err := binary.Decode(data, binary.LittleEndian, list); err != nil {
		t.Fatal(err)
	}
	return list
}
