// Package lessons holds the programs of the lessons, one for each listing: what a learner reads line by line, runs with other
// numbers on another device, and takes home. A program that is wrong on purpose stands beside the one that mends it, and a test
// shows which tool finds the mistake.
//
// The comment above a line of a program is that line's explanation in the lessons; it holds for the lines below it, up to the next
// comment. What a program prints is the same on every device.
package lessons

import (
	"embed"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

// Source has the programs as text: lNN.go, and in python/LNN.py what they are in PyTorch.
//
//go:embed l*.go python/*.py
var Source embed.FS

// Numbers are what may be changed in a program, by name.
type Numbers map[string]int

// Program runs in env, with numbers, and says on w what it saw.
type Program func(env *tensor.Env, n Numbers, w io.Writer) error

// Number is what may be changed in a program, and within which bounds it makes sense.
type Number struct {
	Name     string
	Value    int // unless it is changed
	Min, Max int
	What     string // in words, with the unit
}

// Mistake is a program that is wrong on purpose.
type Mistake struct {
	Name  string // of the function in the listing's file
	Run   Program
	What  string // what is wrong
	Found string // what says so
	Rule  string // by which warpline vet finds it in the program's PyTorch form; "": it shows only when it runs
}

// Listing is a program of the lessons.
type Listing struct {
	ID      string // "L08", of the list that the lessons were made from
	Title   string
	Run     Program  // nil where Command is all
	Numbers []Number // of Run and of Wrong
	Wrong   *Mistake // nil: none
	Command string   // what does the same at the command line, or ""
	Absent  string   // why there is no program, or ""
}

// Values are a listing's numbers unless they are changed.
func (l *Listing) Values() Numbers {
	n := Numbers{}
	for _, v := range l.Numbers {
		n[v.Name] = v.Value
	}
	return n
}

// Find is the listing with an id.
func Find(id string) (*Listing, bool) {
	for i := range Listings {
		if Listings[i].ID == id {
			return &Listings[i], true
		}
	}
	return nil, false
}

// several says why two listings wait.
const several = "there is PyTorch's form of it alone, since groups of several GPUs are not in this version; tensor.Open(\"cuda:1\") and examples/twodevices.go have two devices in one program"

// Listings are all, in the order of their ids.
var Listings = []Listing{
	{ID: "L01", Title: "What the driver sees, and what this process can use", Run: L01, Command: "warpline doctor"},
	{ID: "L02", Title: "Three quick checks", Run: L02, Command: "warpline check --device cpu"},
	{ID: "L03", Title: "One program for every device", Run: L03},
	{ID: "L04", Title: "The floor of memory for a number of parameters", Run: L04, Command: "warpline plan 1e9",
		Numbers: []Number{{"millions", 1000, 1, 1_000_000, "parameters, in millions"}}},
	{ID: "L05", Title: "A linear layer on a batch of tickets", Run: L05, Numbers: []Number{batch(32), {"tokens", 128, 1, 512, "tokens of a ticket"}},
		Wrong: &Mistake{"L05Wrong", L05Wrong, "the model moved, the batch did not", "the error of the operation, at its line; nn.Preflight before the run", "R01"}},
	{ID: "L06", Title: "A batch of three fields moves in one call", Run: L06, Numbers: []Number{batch(4)},
		Wrong: &Mistake{"L06Wrong", L06Wrong, "one field of three stays behind", "nn.Preflight, which names the field", "R01"}},
	{ID: "L07", Title: "A check before the run", Run: L07, Numbers: []Number{batch(4)}},
	{ID: "L08", Title: "One complete step", Run: L08, Numbers: []Number{batch(8), {"steps", 1, 1, 200, "steps of the optimizer"}}},
	{ID: "L09", Title: "One number for the log", Run: L09, Numbers: []Number{{"steps", 20, 1, 500, "steps"}, {"every", 10, 1, 500, "steps between two reports"}},
		Wrong: &Mistake{"L09Wrong", L09Wrong, "a report in every step makes the host wait in every step", "the waits that a device counts by line; the finding waits-in-loop of a profile", "R13"}},
	{ID: "L10", Title: "How long a product takes", Run: L10, Numbers: []Number{side(128), {"warmup", 3, 1, 50, "runs that do not count"}, {"runs", 10, 1, 200, "runs that count"}},
		Wrong: &Mistake{"L10Wrong", L10Wrong, "a clock around calls that only ask for work", "prof.Timer, which tells the time to ask apart from the time of the work", "R48"}},
	{ID: "L11", Title: "Live bytes, and bytes that the allocator keeps", Run: L11, Numbers: []Number{{"mib", 4, 1, 64, "MiB to take"}}},
	{ID: "L12", Title: "What half a batch and half a length save", Run: L12, Numbers: []Number{batch(8), {"tokens", 64, 2, 256, "tokens"}}, Command: "warpline train gpt --vocab 256 --dry-run t4"},
	{ID: "L13", Title: "Half a million independent elements", Run: L13, Numbers: []Number{{"rows", 1024, 1, 4096, "rows"}, {"columns", 512, 1, 4096, "columns"}}},
	{ID: "L14", Title: "What is known of a device", Run: L14, Command: "warpline doctor"},
	{ID: "L15", Title: "Made where it is used", Run: L15, Numbers: []Number{side(3)},
		Wrong: &Mistake{"L15Wrong", L15Wrong, "made on the host and moved in every step", "nn.Preflight with the env that was meant; copies in a profile", "V14"}},
	{ID: "L16", Title: "There and back", Run: L16, Numbers: []Number{side(3)}},
	{ID: "L17", Title: "Batches that are on their way before they are needed", Run: L17, Numbers: []Number{batch(8), {"workers", 4, 1, 16, "goroutines that read"}}},
	{ID: "L18", Title: "The allocator's figures", Run: L18, Numbers: []Number{{"mib", 8, 1, 64, "MiB to take"}}},
	{ID: "L19", Title: "Three ways to need less", Run: L19, Numbers: []Number{batch(32), {"width", 64, 8, 512, "width of a layer"}},
		Wrong: &Mistake{"L19Wrong", L19Wrong, "an evaluation that records what no backward pass will ask for", "prof.Memory, whose line has what a forward pass keeps", "R09"}},
	{ID: "L20", Title: "A step in float16 that leaves out what does not fit", Run: L20, Numbers: []Number{{"steps", 4, 1, 50, "steps"}, {"scale", 44, 0, 60, "the loss scale to begin with, as a power of two"}},
		Wrong: &Mistake{"L20Wrong", L20Wrong, "float16 without a scale rounds small gradients to nothing", "prof.Precision, which counts gradients that float16 rounds to zero", "V06"}},
	{ID: "L21", Title: "Replicas in one process", Absent: several},
	{ID: "L22", Title: "A process for each GPU", Absent: several},
	{ID: "L23", Title: "A window of steps, profiled", Run: L23, Numbers: []Number{{"active", 3, 1, 20, "steps that are recorded"}, {"rounds", 2, 1, 5, "rounds"}}, Command: "warpline profile RUN --by op --sort self --top 10"},
	{ID: "L24", Title: "Who took memory, and where", Run: L24, Numbers: []Number{side(64)}, Command: "warpline diagnose snapshot.pickle"},
	{ID: "L25", Title: "The same model on whatever there is", Run: L25, Numbers: []Number{batch(4)}},
	{ID: "L26", Title: "Few transfers", Run: L26, Numbers: []Number{{"steps", 10, 1, 100, "steps"}},
		Wrong: &Mistake{"L26Wrong", L26Wrong, "a small copy and a read for every element of a batch", "the waits and copies that a device counts by line", "R13"}},
	{ID: "L27", Title: "Evaluation, without a graph and without dropout", Run: L27, Numbers: []Number{batch(16)},
		Wrong: &Mistake{"L27Wrong", L27Wrong, "dropout is on while a model is scored", "the same input scored twice", "V03"}},
	{ID: "L28", Title: "A measurement that others can repeat", Run: L28, Numbers: []Number{side(128), {"runs", 100, 2, 500, "runs that count"}}, Command: "warpline bench gemm --n 1000"},
	{ID: "L29", Title: "Pitfall: two devices in one operation", Run: L29, Numbers: []Number{side(4)},
		Wrong: &Mistake{"L29Wrong", L29Wrong, "weights here, input there", "the error of the operation, at its line; nn.Preflight before the run", "R01"}},
	{ID: "L30", Title: "Pitfall: losses that are kept", Run: L30, Numbers: []Number{{"steps", 6, 3, 100, "steps"}},
		Wrong: &Mistake{"L30Wrong", L30Wrong, "each loss is kept on the device", "the finding kept-across-steps of a profile, with the line", "R06"}},
	{ID: "L31", Title: "Pitfall: gradients of the step before", Run: L31, Numbers: []Number{{"steps", 3, 1, 20, "steps"}},
		Wrong: &Mistake{"L31Wrong", L31Wrong, "two backward passes for one step", "the gradient, which is twice as large", "R07"}},
	{ID: "L32", Title: "Three questions to ask while debugging", Run: L32, Numbers: []Number{side(4)}},
	{ID: "L33", Title: "Exercise: one line chooses the device", Run: L33, Numbers: []Number{batch(32)}, Command: "warpline learn start device-agnostic"},
	{ID: "L34", Title: "Challenge: a memory tracker", Run: L34, Numbers: []Number{side(256)}, Command: "warpline learn start memory-tracker"},
}

func batch(n int) Number { return Number{"batch", n, 1, 256, "samples of a batch"} }

func side(n int) Number { return Number{"n", n, 1, 1024, "rows and columns"} }
