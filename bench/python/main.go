// Python compares trees of programs with those that Python's own parser makes, over all programs of folders:
//
//	go run ./bench/python PYTHON DIR...
//
// PYTHON is an interpreter, whose grammar counts. A program that only one of both refuses is a difference.
package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/pysyntax"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: python PYTHON DIR...")
	}
	t := &tally{}
	for _, dir := range os.Args[2:] {
		if err := t.compare(os.Args[1], dir); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%d programs, %d lines: %d trees equal, %d refused by both, %d differ; %.0f lines a second\n",
		t.files, t.lines, t.equal, t.refused, t.differ, float64(t.lines)/t.took.Seconds())
	if t.differ > 0 {
		os.Exit(1)
	}
}

// tally counts programs.
type tally struct {
	files, lines, equal, refused, differ int
	took                                 time.Duration
}

func (t *tally) compare(python, dir string) error {
	cmd := exec.Command(python, "internal/pysyntax/testdata/dump.py", "-hash", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		name, want, _ := strings.Cut(lines.Text(), "\t")
		if err := t.one(name, want); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return cmd.Wait()
}

func (t *tally) one(name, want string) error {
	source, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	begin := time.Now()
	f, err := pysyntax.Parse(name, source)
	t.took += time.Since(begin)
	t.files++
	refused := strings.HasPrefix(want, "!")
	switch {
	case err != nil && refused:
		t.refused++
		return nil
	case err != nil || refused:
		t.differ++
		fmt.Printf("%s: %v; Python: %s\n", name, err, want)
		return nil
	}
	t.lines += f.Lines()
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(f.Dump()))); got != want {
		t.differ++
		fmt.Printf("%s: another tree\n", name)
		return nil
	}
	t.equal++
	return nil
}
