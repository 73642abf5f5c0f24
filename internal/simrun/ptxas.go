package simrun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/warpline-ml/warpline/internal/gpusim"
)

// Where the number of registers comes from.
const (
	byLiveness = "estimated from liveness"
	byPtxas    = "by ptxas"
	told       = "as told"
)

// patience is how long ptxas may take before the estimate has to do.
const patience = 20 * time.Second

var (
	compiling = regexp.MustCompile(`Compiling entry function '([^']+)'`)
	used      = regexp.MustCompile(`Used (\d+) registers`)
)

// registers asks ptxas, NVIDIA's assembler, where it is in the PATH, how many registers of a thread each kernel of the file
// has on a card: how many it keeps where is not in PTX, and an estimate may be half as many or twice. The result is empty
// where it is not found or does not take the file.
func (f *file) registers(ctx context.Context, card gpusim.Card) map[string]int {
	found := map[string]int{}
	path, err := exec.LookPath("ptxas")
	if err != nil {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	target := fmt.Sprintf("sm_%d%d", card.Compute[0], card.Compute[1])
	out, err := exec.CommandContext(ctx, path, "-v", "--gpu-name", target, "-o", os.DevNull, f.path).CombinedOutput()
	if err != nil {
		return found
	}
	return readRegisters(string(out))
}

// readRegisters reads what ptxas -v says.
func readRegisters(out string) map[string]int {
	found := map[string]int{}
	starts := compiling.FindAllStringSubmatchIndex(out, -1)
	for i, at := range starts {
		end := len(out)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		if m := used.FindStringSubmatch(out[at[1]:end]); m != nil {
			found[out[at[2]:at[3]]], _ = strconv.Atoi(m[1])
		}
	}
	return found
}
