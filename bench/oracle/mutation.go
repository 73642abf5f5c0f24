package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/warpline-ml/warpline/internal/gpusim/mutate"
)

func mutation() ([]byte, error) {
	all, err := mutate.TestSuites(func(path string) (string, error) {
		b, err := os.ReadFile(path)
		return string(b), err
	})
	if err != nil {
		return nil, err
	}
	var results [][]*mutate.Result
	for _, s := range all {
		r, err := s.Run(1)
		if err != nil {
			return nil, err
		}
		if err := s.Judge(r, true); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		results = append(results, r)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Mutants of correct kernels

Made by `+"`go run ./bench/oracle mutation`"+`. Each mutant is a kernel with one change. It runs under up to %d schedules, two of them
independent, until a check reports it; the kernels as they are give no finding under any of them. "Equivalent" mutants
are as correct as the kernel and count in no rate. A mutant of a condition is "seen to leave its buffers" when it changes
bytes beyond them, or has results that depend on these, in a run in which all memory is one allocation: this does not rest
on memcheck, and what is seen here must be reported there.

The bars: %.0f %% of the mutants of synchronisation reported, every mutant reported that was seen to leave its buffers, and
a reason for each of the others. A test holds them, on a sample, or on all with WARPLINE_MUTANTS=all.

`, len(mutate.Seeds), 100*mutate.SyncBar)
	b.Write(mutate.Report(all, results))
	return b.Bytes(), nil
}
