// Gen writes the table of `warpline torch` and docs/pytorch.md. It is run by go generate in internal/torchcall.
package main

import (
	"fmt"
	"os"

	"github.com/warpline-ml/warpline/internal/torchcall/source"
)

func main() {
	files, err := source.Generate("../..")
	for path, text := range files {
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "torchcall/gen:", err)
		os.Exit(1)
	}
}
