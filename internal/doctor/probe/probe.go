// Package probe collects the facts that package doctor judges: it reads files of the system, opens the driver's nodes, and
// asks NVIDIA's libraries in processes of their own, which may hang or crash. It changes nothing, makes no context on a card,
// runs no program but this one, and uses no network.
package probe

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/doctor"
)

// Config says what to look at.
type Config struct {
	Tool       string                   // warpline's version
	Root       string                   // of the file system; empty: "/"
	PID        int                      // of a process to look at too; 0: none
	Floor      int                      // the oldest CUDA that the program's kernels run under
	Executable string                   // that answers to Child's arguments; empty: the libraries are not asked
	Limit      time.Duration            // of each child; 0: 30 s
	Say        func(words string)       // is told what is under way; may be nil
	Getenv     func(name string) string // of this process; nil: the system's

	stat func(path string) doctor.Node // for tests: what the system says of a node
}

// defaultLimit is how long a library may take to answer.
const defaultLimit = 30 * time.Second

// prober is a collection under way.
type prober struct {
	Config
	tree
	facts       *doctor.Facts
	interpreter string // of the process that was pointed at
}

// Collect looks at the machine. What fails is missing from the facts, with a note; a context that ends stops the children.
func Collect(ctx context.Context, c Config) *doctor.Facts {
	if c.Say == nil {
		c.Say = func(string) {}
	}
	if c.Limit == 0 {
		c.Limit = defaultLimit
	}
	f := &doctor.Facts{Version: doctor.Version, Tool: c.Tool, Time: time.Now().UTC(), OS: runtime.GOOS, Arch: runtime.GOARCH, Floor: c.Floor, TookMS: map[string]int64{}}
	p := &prober{Config: c, tree: tree{c.Root}, facts: f}
	for _, part := range parts {
		if ctx.Err() == nil {
			p.run(part.name, func() { part.probe(p) })
		}
	}
	if c.Executable != "" {
		p.run("nvml", func() { p.askNVML(ctx) })
		p.run("cuda", func() { p.askCUDA(ctx) })
	}
	return f
}

// parts are the probes of files and nodes, in their order: later ones use what earlier ones found.
var parts = []struct {
	name  string
	probe func(*prober)
}{
	{"env", (*prober).env}, {"platform", (*prober).platform}, {"bus", (*prober).bus}, {"kernel", (*prober).kernel}, {"nodes", (*prober).nodes},
	{"libraries", (*prober).libraries}, {"limits", (*prober).limits}, {"places", (*prober).places}, {"network", (*prober).network},
	{"services", (*prober).services}, {"processes", (*prober).processes}, {"desktop", (*prober).desktop}, {"python", (*prober).python},
}

// run times a probe, and turns a mistake of this program in it into a note.
func (p *prober) run(name string, probe func()) {
	start := time.Now()
	defer func() {
		if v := recover(); v != nil {
			p.note("%s: a mistake in warpline itself: %v", name, v)
		}
		p.facts.TookMS[name] = time.Since(start).Milliseconds()
	}()
	probe()
}

func (p *prober) note(format string, args ...any) {
	p.facts.Notes = append(p.facts.Notes, strings.TrimSpace(fmt.Sprintf(format, args...)))
}
