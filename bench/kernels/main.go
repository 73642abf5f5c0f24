// Command kernels has ptxas assemble every module of the engine for every target, and writes what it says: registers,
// spills, and how long it takes, which is what a driver's first load costs; at the end, what the modules of some trainings
// cost together.
//
//	go run ./bench/kernels -ptxas ptxas [FILE.ptx …] > bench/kernels/report.md
//
// Modules are those of the first target's cards. Files are assembled after them. For a record that all are taken, with what spills:
//
//	go run ./bench/kernels -ptxas ptxas -targets 75 -best 1 -brief
//
// With -index it writes the registers of each kernel into the index of kernels instead:
//
//	go run ./bench/kernels -ptxas ptxas -index
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
)

var (
	ptxas   = flag.String("ptxas", "ptxas", "NVIDIA's assembler; the package triton has one")
	targets = flag.String("targets", "80,86,89,90,100,120", "compute capabilities")
	best    = flag.Int("best", 3, "the time of a module is the best of so many")
	pick    = flag.String("modules", "", "only modules whose name begins so; a dash for none, only what trainings compile")
	brief   = flag.Bool("brief", false, "write sums, and the kernels that spill, and neither each kernel nor trainings")
	index   = flag.Bool("index", false, "note the registers for each module's own target in internal/cuda/kernels/index.json, and print no report")
)

// kernel is what ptxas says of a kernel.
type kernel struct {
	name      string
	registers int
	shared    int // bytes, static
	spills    int // bytes stored
}

// module is what ptxas says of a module for one target.
type module struct {
	kernels []kernel
	took    time.Duration
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	version, err := exec.Command(*ptxas, "--version").Output()
	if err != nil {
		log.Fatalf("cannot run ptxas: %v", err)
	}
	if *index {
		if err := note("internal/cuda/kernels"); err != nil {
			log.Fatal(err)
		}
		return
	}
	lines := strings.Split(strings.TrimSpace(string(version)), "\n")
	list := strings.Split(*targets, ",")
	fmt.Printf("# The kernels by ptxas\n\n%s; targets sm_%s. Made by `go run ./bench/kernels`.\n\n", lines[len(lines)-1], strings.Join(list, ", sm_"))
	if *brief {
		if err := sums(list); err != nil {
			log.Fatal(err)
		}
		return
	}
	fmt.Printf("Times are the processor's in user mode for sm_%s, the best of %d; registers and spilled bytes are the largest over all targets.\n\n", list[0], *best)
	fmt.Println("| module | ms | kernel | registers | shared | spilled |\n|---|---|---|---|---|---|")
	var total time.Duration
	took := map[string]time.Duration{}
	for _, m := range modulesFor(list[0]) {
		if strings.HasPrefix(m.Name, *pick) {
			text, err := m.PTX()
			if err != nil {
				log.Fatal(err)
			}
			took[m.Name] = report(m.Name, text, list)
			total += took[m.Name]
		}
	}
	for _, path := range flag.Args() {
		text, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		report(filepath.ToSlash(path), text, list)
	}
	fmt.Printf("\nAll modules of the engine: %.1f s.\n", total.Seconds())
	if *pick == "" || *pick == "-" {
		if err := reportRuns(took); err != nil {
			log.Fatal(err)
		}
	}
}

// modulesFor is the modules that cards of a target, such as 80, have.
func modulesFor(target string) []*kernels.Module {
	sm, err := strconv.Atoi(target)
	if err != nil {
		log.Fatalf("target %q is no number", target)
	}
	set, err := kernels.Embedded().For([2]int{sm / 10, sm % 10})
	if err != nil {
		log.Fatal(err)
	}
	return set.Modules()
}

// sums assembles all modules for all targets and writes how many there are, what they take together, and what spills.
func sums(list []string) error {
	var total time.Duration
	var modules, all int
	most, refused := kernel{}, 0
	spilling := ""
	for _, m := range modulesFor(list[0]) {
		if !strings.HasPrefix(m.Name, *pick) {
			continue
		}
		text, err := m.PTX()
		if err != nil {
			return err
		}
		modules++
		made, err := assembleAll(text, list)
		if err != nil {
			refused++
			fmt.Printf("refused: %s: %v\n", m.Name, err)
			continue
		}
		total += made[0].took
		all += len(made[0].kernels)
		for i := range list {
			for _, k := range made[i].kernels {
				if k.spills > 0 {
					spilling += fmt.Sprintf("| %s | sm_%s | %d | %d |\n", k.name, list[i], k.registers, k.spills)
				}
				if k.registers > most.registers {
					most = k
				}
			}
		}
	}
	fmt.Printf("%d modules, %d kernels, %d refused; %.1f s of the processor for sm_%s; most registers %d, of %s.\n", modules, all, refused, total.Seconds(), list[0], most.registers, most.name)
	if spilling != "" {
		fmt.Printf("\n| kernel that spills | target | registers | bytes stored |\n|---|---|---|---|\n%s", spilling)
	}
	if refused > 0 {
		return fmt.Errorf("%d modules are refused", refused)
	}
	return nil
}

// report prints a module's rows and returns what it took for the first target.
func report(name string, text []byte, list []string) time.Duration {
	made, err := assembleAll(text, list)
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	first := made[0]
	worst := map[string]kernel{}
	for i, m := range made {
		if i >= len(list) {
			first.took = min(first.took, m.took)
		}
		for _, k := range m.kernels {
			w := worst[k.name]
			worst[k.name] = kernel{k.name, max(w.registers, k.registers), max(w.shared, k.shared), max(w.spills, k.spills)}
		}
	}
	slices.SortFunc(first.kernels, func(a, b kernel) int { return strings.Compare(a.name, b.name) })
	for _, k := range first.kernels {
		w := worst[k.name]
		fmt.Printf("| %s | %d | %s | %d | %d | %d |\n", name, first.took.Milliseconds(), k.name, w.registers, w.shared, w.spills)
	}
	return first.took
}

var (
	entry     = regexp.MustCompile(`Compiling entry function '([^']+)'`)
	spills    = regexp.MustCompile(`(\d+) bytes spill stores`)
	registers = regexp.MustCompile(`Used (\d+) registers`)
	shared    = regexp.MustCompile(`(\d+) bytes smem`)
)

// assembleAll runs ptxas for each target, and for the first one again as often as its best time is wanted of.
func assembleAll(text []byte, list []string) ([]module, error) {
	for range *best - 1 {
		list = append(list[:len(list):len(list)], list[0])
	}
	made, errs := make([]module, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for i, target := range list {
		wg.Go(func() {
			if made[i], errs[i] = assemble(text, target); errs[i] != nil {
				errs[i] = fmt.Errorf("for sm_%s: %w", target, errs[i])
			}
		})
	}
	wg.Wait()
	return made, errors.Join(errs...)
}

// assemble runs ptxas on a module.
func assemble(text []byte, target string) (m module, err error) {
	dir, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "in.ptx")
	if err := os.WriteFile(path, text, 0o666); err != nil {
		return m, err
	}
	cmd := exec.Command(*ptxas, "-v", "-arch=sm_"+target, path, "-o", filepath.Join(dir, "out"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return m, fmt.Errorf("%w\n%s", err, out)
	}
	m.took = cmd.ProcessState.UserTime() // the rest is starting a process, which a driver need not
	for line := range bytes.Lines(out) {
		m.read(string(line))
	}
	return m, nil
}

// read takes what a line of ptxas says of the kernel under way.
func (m *module) read(line string) {
	if g := entry.FindStringSubmatch(line); g != nil {
		m.kernels = append(m.kernels, kernel{name: g[1]})
		return
	}
	if len(m.kernels) == 0 {
		return
	}
	k := &m.kernels[len(m.kernels)-1]
	for _, f := range []struct {
		re *regexp.Regexp
		to *int
	}{{spills, &k.spills}, {registers, &k.registers}, {shared, &k.shared}} {
		if g := f.re.FindStringSubmatch(line); g != nil {
			*f.to, _ = strconv.Atoi(g[1])
		}
	}
}
