// Package peer measures another process beside us: questions in, seconds out, in turns with our own measurements.
package peer

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
)

// Peer is a process that answers each line with one number. A nil Peer is nobody.
type Peer struct {
	in  io.Writer
	out *bufio.Reader
}

// Python runs a script in a Python that has what it imports, with more variables in its environment; "" gives nil. It ends
// the program when it cannot.
func Python(python, script string, env ...string) *Peer {
	if python == "" {
		return nil
	}
	cmd := exec.Command(python, "-c", script)
	cmd.Env = append(os.Environ(), env...)
	return Start(cmd)
}

// Start runs a command. It ends the program when it cannot.
func Start(cmd *exec.Cmd) *Peer {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		log.Fatalf("cannot start the peer %s: %v", cmd.Path, err)
	}
	return &Peer{in, bufio.NewReader(out)}
}

// Ask sends a line of words and returns the number that comes back.
func (p *Peer) Ask(words ...any) (x float64) {
	fmt.Fprintln(p.in, words...)
	if _, err := fmt.Fscan(p.out, &x); err != nil {
		log.Fatalf("no answer from the peer: %v; its own message is above", err)
	}
	return x
}

// Median is the middle of x.
func Median(x []float64) float64 { return slices.Sorted(slices.Values(x))[len(x)/2] }
