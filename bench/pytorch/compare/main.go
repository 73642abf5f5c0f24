// Command compare computes random calls of package tensor's methods, with first and second derivatives, and has PyTorch
// compute them too.
//
//	go run ./bench/pytorch/compare -python python3 [-seed 1] [-n 20000] [-only softmax,cat] [-device cpu]
//
// Equal seeds give equal cases. It prints a line per op and the first differences, and exits with 1 if one of them is not
// a difference on purpose (the list is in compare.py, with reasons). Without -python it writes the cases to standard
// output. -golden FILE has PyTorch put its results in place of ours, for the test of this package.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/tensor"
)

func main() {
	python := flag.String("python", "", "a Python that has torch; without it the cases are written to standard output")
	script := flag.String("script", "bench/pytorch/compare/compare.py", "PyTorch's side")
	seed := flag.Uint64("seed", 1, "of the cases")
	n := flag.Int("n", 20000, "number of cases")
	only := flag.String("only", "", "ops, separated by commas; all without it")
	device := flag.String("device", "cpu", "where our side runs, as tensor.Open takes it")
	golden := flag.String("golden", "", "write the cases with PyTorch's results to this file")
	flag.Parse()
	if err := run(*python, *script, *seed, *n, *only, *device, *golden); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(python, script string, seed uint64, n int, only, device, golden string) error {
	if only != "" {
		names = slices.DeleteFunc(names, func(s string) bool { return !slices.Contains(strings.Split(only, ","), s) })
		if len(names) == 0 {
			return fmt.Errorf("-only %s names no op of the table", only)
		}
	}
	env, err := tensor.Open(device)
	if err != nil {
		return err
	}
	if python == "" {
		return write(os.Stdout, env, seed, n)
	}
	dir, err := os.MkdirTemp("", "warpline-compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cases.jsonl")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f, env, seed, n); err != nil {
		return err
	}
	args := []string{script, path}
	if golden != "" {
		args = append(args, "--golden", golden)
	}
	cmd := exec.Command(python, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// write computes cases and writes one JSON object per line.
func write(w io.Writer, env *tensor.Env, seed uint64, n int) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	for id := range n {
		c := Draw(seed, id)
		c.Got = c.Run(env)
		if err := e.Encode(c); err != nil {
			return err
		}
	}
	return b.Flush()
}
