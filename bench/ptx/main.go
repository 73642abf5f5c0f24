// Command ptx keeps internal/ptx and NVIDIA's ptxas in agreement. It is run by hand, with a ptxas from a throw-away
// environment (the triton wheel carries one); nothing else in the repository needs ptxas.
//
//	go run ./bench/ptx -ptxas PATH forms > forms.txt && mv forms.txt internal/ptx/
//	go run ./bench/ptx -ptxas PATH -only wgmma,cp forms > forms.txt && mv forms.txt internal/ptx/ # the other opcodes stay
//	go run ./bench/ptx -ptxas PATH -seed 1 -n 20000 compare > bench/ptx/report.md
//	go run ./bench/ptx -ptxas PATH -seed 1 -n 20000 -only wgmma,cp compare > bench/ptx/hopper.md
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	path := flag.String("ptxas", "ptxas", "path of ptxas, release 12.9")
	seed := flag.Uint64("seed", 1, "seed of the mutations")
	n := flag.Int("n", 20000, "number of mutated instructions")
	only := flag.String("only", "", "opcodes, with commas between, that forms asks about and compare mutates; all if empty")
	flag.Parse()
	var ops []string
	if *only != "" {
		ops = strings.Split(*only, ",")
	}
	if err := run(*path, flag.Arg(0), *seed, *n, ops); err != nil {
		fmt.Fprintln(os.Stderr, "ptx:", err)
		os.Exit(1)
	}
}

func run(path, command string, seed uint64, n int, only []string) error {
	dir, err := os.MkdirTemp("", "ptx")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a := &assembler{path: path, dir: dir}
	var out []byte
	switch command {
	case "forms":
		var old []byte
		if old, err = os.ReadFile("internal/ptx/forms.txt"); err == nil {
			out, err = writeForms(a, only, old)
		}
	case "compare":
		out, err = compare(a, seed, n, only)
	default:
		return fmt.Errorf("unknown command %q, expected forms or compare", command)
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(out)
	return err
}
