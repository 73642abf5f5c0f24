package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// assembler runs ptxas on many instructions at once. ptxas reports semantic errors of every line of a file but stops at a
// fatal one, so the rest of a file is run again after that line.
type assembler struct {
	path string
	dir  string
	runs int
}

// verdict is what ptxas says of an instruction: "" if it is accepted.
type verdict string

var message = regexp.MustCompile(`line (\d+); (error|fatal)\s*: (.*)`)

// judge asks about instructions in the given version and target. A made-up instruction at the end keeps ptxas from
// compiling what it has read.
func (a *assembler) judge(version, target string, insts []string) ([]verdict, error) {
	out := make([]verdict, len(insts))
	for start := 0; start < len(insts); {
		n, err := a.once(version, target, insts[start:], out[start:])
		if errors.Is(err, errCrash) {
			err = a.halves(version, target, insts[start:], out[start:])
			n = len(insts) - start
		}
		if err != nil {
			return nil, err
		}
		start += n
	}
	return out, nil
}

// errCrash: ptxas died of some instruction. It does on a few malformed ones.
var errCrash = errors.New("ptxas crashed")

const crashed verdict = "crash"

// halves finds the instruction that ptxas dies of.
func (a *assembler) halves(version, target string, insts []string, out []verdict) error {
	if len(insts) == 1 {
		out[0] = crashed
		return nil
	}
	mid := len(insts) / 2
	for _, part := range [][2]int{{0, mid}, {mid, len(insts)}} {
		vs, err := a.judge(version, target, insts[part[0]:part[1]])
		if err != nil {
			return err
		}
		copy(out[part[0]:], vs)
	}
	return nil
}

// once runs ptxas and returns how many instructions it has judged: all, or those up to a fatal one.
func (a *assembler) once(version, target string, insts []string, out []verdict) (int, error) {
	text, first := source(version, target, insts)
	path := filepath.Join(a.dir, "batch.ptx")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	a.runs++
	msg, err := exec.CommandContext(ctx, a.path, "-arch="+target, path, "-o", os.DevNull).CombinedOutput()
	if err == nil {
		return 0, fmt.Errorf("ptxas accepted the made-up instruction")
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 0 && ctx.Err() == nil {
		return 0, errCrash
	}
	for line := range bytes.Lines(msg) {
		m := message.FindSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			return 0, err
		}
		i := n - first
		switch {
		case i >= len(insts):
			return len(insts), nil
		case i < 0:
			return 0, fmt.Errorf("ptxas rejects the frame: %s", line)
		}
		out[i] += verdict(m[3]) + "; "
		if string(m[2]) == "fatal" {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("ptxas stopped early (%v): %s", err, msg[max(0, len(msg)-600):])
}

// source puts one instruction on each line of a kernel and says which line is the first.
func source(version, target string, insts []string) ([]byte, int) {
	module, body := ptx.CandidateDeclarations()
	var b bytes.Buffer
	fmt.Fprintf(&b, ".version %s\n.target %s\n.address_size 64\n%s", version, target, module)
	if !older(version, "8.3") {
		body += ".reg .b128 %b128_<140>;"
	}
	fmt.Fprintf(&b, ".entry kernel(.param .align 16 .b8 vparam[64])\n{\n%s", body)
	first := bytes.Count(b.Bytes(), []byte("\n")) + 1
	for _, in := range insts {
		b.WriteString(strings.ReplaceAll(in, "\n", " "))
		b.WriteByte('\n')
	}
	b.WriteString("madeup.s32 %b32_1;\nTarget:\nret;\n}\n")
	return b.Bytes(), first
}
