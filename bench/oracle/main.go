// Command oracle judges the simulated GPU by means that do not rest on it. It is run by hand; nothing else in the
// repository needs clang.
//
//	go run ./bench/oracle mutation > bench/oracle/mutation.md
//	go run ./bench/oracle engine > bench/oracle/mutation-engine.md
//	go run ./bench/oracle -clang clang-19 -seed 1000 -n 1700 random >> bench/oracle/report.md
//	go run ./bench/oracle -clang clang-19 -n 68 golden
//
// The first breaks correct kernels and counts what the checks report, the second does so with kernels of the CUDA engine.
// The third generates kernels in C++, compiles each for this machine and to PTX at -O0, -O1 and -O3, and compares what
// they compute bit by bit; it prints a row of the report, after an interrupt for the kernels that it came to. The fourth
// writes such kernels with the hashes of the machine's answers to internal/gpusim/testdata, for the tests.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	c := &config{}
	flag.StringVar(&c.clang, "clang", "clang-19", "clang with the NVPTX back end")
	flag.Uint64Var(&c.seed, "seed", 1, "seed of the generator")
	flag.IntVar(&c.n, "n", 100, "number of kernels")
	flag.Parse()
	if err := c.run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func (c *config) run(command string) error {
	var out []byte
	var err error
	switch command {
	case "mutation":
		out, err = mutation()
	case "engine":
		out, err = engine()
	case "random":
		out, err = c.random()
	case "golden":
		err = c.golden()
	default:
		return fmt.Errorf("unknown command %q, expected mutation, engine, random or golden", command)
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(out)
	return err
}
