package errortext

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// Sizes are of a model, as far as they are known; 0 is unknown.
type Sizes struct {
	Batch   int // samples of a step
	Context int // tokens of a sample
	Vocab   int
	Heads   int // of attention
}

// Shares of a card, and of a request, by which verdicts are told apart.
const (
	sharedShare = 0.10    // of a card that is others': the card is shared
	stuckShare  = 0.10    // of a card that is reserved and not in use: fragmentation, if it would have been enough
	nearShare   = 0.90    // of a card that the process wants: near the limit, as TensorBoard's plugin has it
	copyShare   = 0.02    // by which a request may differ from all that is allocated and be a second copy of it
	shapeShare  = 0.002   // by which a product of sizes may differ from a request
	ownContext  = 1 << 30 // what a process has on a card beside the allocator, at most in ordinary cases
)

// fragmented is the switch that gives what is reserved back to requests of other sizes.
const fragmented = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py"

// fragmentedOld is that switch before PyTorch 2.1, which refuses the other: "Unrecognized CachingAllocator option".
const fragmentedOld = "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512 python train.py, or PyTorch 2.1 and newer with expandable_segments:True in its place"

// memoryRules are the rows of the decision over an out-of-memory, in their order; each may add a finding.
var memoryRules []memoryRule

// memoryRule is a row.
type memoryRule struct {
	Name, Rule string
	judge      func(m *Match, o *OOM, s Sizes) *finding.Finding
}

func init() {
	memoryRules = []memoryRule{
		{"impossible-request", "O01", impossible},
		{"process-cap", "O02", capped},
		{"shared-card", "O03", shared},
		{"fragmentation", "O04", fragments},
		{"refused-though-free", "O05", refused},
		{"optimizer-states", "O06", states},
		{"second-copy", "O07", secondCopy},
		{"logits", "O08", logits},
		{"attention-matrix", "O09", attention},
		{"evaluation", "O11", evaluation},
		{"in-backward", "O12", inBackward},
		{"near-limit", "R11", nearLimit},
		{"full-card", "R11", fullCard},
	}
}

// judgeOOM applies the rules.
func judgeOOM(m *Match, s Sizes) []finding.Finding {
	var all []finding.Finding
	for _, r := range memoryRules {
		f := r.judge(m, m.OOM, s)
		if f == nil {
			continue
		}
		f.Rule, f.Name = r.Rule, r.Name
		f.Evidence = append(f.Evidence, finding.Evidence{Name: "message", Text: m.OOM.says()})
		all = append(all, *f)
		if r.Rule == "O01" {
			return append(all, shapes(m, s)...) // nothing on this card could mend it
		}
	}
	finding.Sort(all)
	return all
}

// shapes are what a request is, where the model's sizes tell.
func shapes(m *Match, s Sizes) (all []finding.Finding) {
	for _, r := range memoryRules {
		if r.Rule != "O08" && r.Rule != "O09" {
			continue
		}
		if f := r.judge(m, m.OOM, s); f != nil {
			f.Rule, f.Name = r.Rule, r.Name
			all = append(all, *f)
		}
	}
	return all
}

func bytesOf(name string, n int64, text string) finding.Evidence {
	return finding.Evidence{Name: name, Value: n, Unit: "bytes", Text: render.Bytes(n) + " " + text}
}

// share is a of b.
func share(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

func impossible(m *Match, o *OOM, _ Sizes) *finding.Finding {
	if o.Total < 0 || o.Asked <= o.Total {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("one request of %s is more than the whole card has (%s): no batch size mends a wrong shape", render.Bytes(o.Asked), render.Bytes(o.Total)),
		Evidence: []finding.Evidence{bytesOf("asked", o.Asked, fmt.Sprintf("are %s elements of float32, %s of 16 bits", render.Count(o.Asked/4), render.Count(o.Asked/2))),
			bytesOf("total", o.Total, "are on the card")},
		Fix:        at(m, "print the shapes of the operands") + ": one product of sizes gives those elements; usual are a broadcast of (n, 1) with (1, n), attention without a fused kernel, and all scores of a vocabulary at once",
		Gain:       finding.Gain{Text: "the run works"},
		Confidence: finding.High, DisprovedBy: "the shapes at that line are the intended ones",
		Line: m.Site(),
	}
}

// at is where to do something.
func at(m *Match, what string) string {
	if site := m.Site(); site != "" {
		return "at " + site + ", " + what
	}
	return what
}

func capped(m *Match, o *OOM, _ Sizes) *finding.Finding {
	if o.Total >= 0 && o.Allowed >= o.Total || !o.beyondCap() {
		return nil
	}
	return &finding.Finding{
		Title:      fmt.Sprintf("a cap of %s is set for this process, of a card of %s", render.Bytes(o.Allowed), render.Bytes(o.Total)),
		Evidence:   []finding.Evidence{bytesOf("allowed", o.Allowed, "are allowed"), bytesOf("wanted", o.wanted(), "are wanted")},
		Fix:        "raise or remove torch.cuda.set_per_process_memory_fraction (or per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF)",
		Gain:       finding.Gain{Text: "what the cap withholds of the card", Bytes: max(o.Total-o.Allowed, 0)},
		Confidence: finding.High, DisprovedBy: "the same failure without the cap",
		Line: m.Site(),
	}
}

func shared(m *Match, o *OOM, _ Sizes) *finding.Finding {
	other, sure, whose := o.Other(), finding.High, "other processes'"
	if other < 0 { // the text does not say what this process has: its context is in the rest as well
		other, sure, whose = o.Rest(), finding.Medium, "not PyTorch's of this process"
		if other-ownContext < 0 || share(other-ownContext, o.Total) <= sharedShare {
			return nil
		}
	}
	if o.Total <= 0 || share(other, o.Total) <= sharedShare {
		return nil
	}
	evidence := []finding.Evidence{bytesOf("other", other, fmt.Sprintf("of the card (%s) are %s", render.Percent(share(other, o.Total)), whose))}
	names := "nvidia-smi shows whose they are; "
	for _, p := range o.Others {
		evidence = append(evidence, finding.Evidence{Name: "process " + fmt.Sprint(p.PID), Value: p.Bytes, Unit: "bytes", Text: fmt.Sprintf("process %d has %s", p.PID, render.Bytes(p.Bytes))})
	}
	if len(o.Others) > 0 {
		names = fmt.Sprintf("ps -o pid,user,etime,cmd -p %d; ", o.Others[0].PID)
	}
	return &finding.Finding{
		Title:    fmt.Sprintf("the card is shared: %s of its %s are %s", render.Bytes(other), render.Bytes(o.Total), whose),
		Evidence: evidence,
		Fix:      names + "stop them, or take a card that is free: CUDA_VISIBLE_DEVICES=N",
		Gain:     finding.Gain{Text: "what others hold", Bytes: other}, Confidence: sure,
		DisprovedBy: "no other process on the card in nvidia-smi when this one runs alone", Line: m.Site(),
	}
}

func fragments(m *Match, o *OOM, _ Sizes) *finding.Finding {
	stuck := o.Stuck
	if stuck < 0 || o.Free >= o.Asked || o.Asked <= 0 {
		return nil
	}
	enough := stuck >= o.Asked
	if !enough && (o.Total <= 0 || share(stuck, o.Total) <= stuckShare || o.Free < 0 || o.Free+stuck < o.Asked) {
		return nil
	}
	sure, gain := finding.High, finding.Gain{Text: "at most what is reserved and not in use", Bytes: stuck}
	if o.Total > 0 && share(stuck, o.Total) < stuckShare/2 { // the card is full as well, which is told first
		sure, gain = finding.Low, finding.Gain{Text: "this one request, perhaps"}
	}
	fix, disproved := fragmented, "the same failure with expandable segments"
	if o.old {
		fix, disproved = fragmentedOld, "the same failure with it"
	}
	return &finding.Finding{
		Title:      fmt.Sprintf("memory is fragmented: %s are reserved and not in use, but in no piece of %s", render.Bytes(stuck), render.Bytes(o.Asked)),
		Evidence:   []finding.Evidence{bytesOf("reserved_unallocated", stuck, "are reserved and not in use; whole free segments were given back before the message"), bytesOf("asked", o.Asked, "were asked for")},
		Fix:        fix,
		Gain:       gain,
		Confidence: sure, DisprovedBy: disproved, Line: m.Site(),
	}
}

func refused(m *Match, o *OOM, _ Sizes) *finding.Finding {
	if o.Free < 0 || o.Free < o.Asked || o.beyondCap() {
		return nil
	}
	return &finding.Finding{
		Title:      fmt.Sprintf("%s were refused with %s free: it is not the card's memory that is short", render.Bytes(o.Asked), render.Bytes(o.Free)),
		Evidence:   []finding.Evidence{bytesOf("free", o.Free, "are free"), bytesOf("asked", o.Asked, "were asked for")},
		Fix:        "warpline doctor: it looks at what else refuses: a limit of the address space (ulimit -v), the host's memory or its cgroup, a MIG slice, another rank on the same card",
		Gain:       finding.Gain{Text: "the run works"},
		Confidence: finding.Medium, DisprovedBy: "another process took the memory in that moment (nvidia-smi while it runs)",
		Line: m.Site(),
	}
}

// full tells that the request did not fit what was free, or that the text does not say.
func (o *OOM) full() bool { return o.Free < o.Asked }

func states(m *Match, o *OOM, _ Sizes) *finding.Finding {
	if !o.full() || !m.within("/optim", `\optim`, "optimizer", "_init_group", "get_state_buffer", "init_state", "adam", "lion", "fused_step") || m.within("backward") {
		return nil
	}
	return &finding.Finding{
		Title:      "memory ran out in the optimizer: it makes its states at its first step, so the steps before did not show what is needed",
		Evidence:   finding.Says("the traceback ends in %s", m.Frames[len(m.Frames)-1]),
		Fix:        "states of 8 bits (bitsandbytes.optim.AdamW8bit) or of bfloat16, or states spread over the cards (ZeRO, FSDP); warpline plan says what the model takes with each",
		Gain:       finding.Gain{Text: "AdamW keeps 8 bytes of each parameter; 8 bits take 2"},
		Confidence: finding.Medium, DisprovedBy: "steps of the optimizer had been made before this one", Line: m.Site(),
	}
}

func secondCopy(m *Match, o *OOM, _ Sizes) *finding.Finding {
	if !o.full() || o.Allocated <= 256<<20 || math.Abs(share(o.Asked, o.Allocated)-1) > copyShare {
		return nil
	}
	return &finding.Finding{
		Title:      fmt.Sprintf("the request (%s) is as large as all that is allocated (%s): a second copy of everything", render.Bytes(o.Asked), render.Bytes(o.Allocated)),
		Evidence:   []finding.Evidence{{Name: "ratio", Value: share(o.Asked, o.Allocated), Text: fmt.Sprintf("the request is %.3f of what is allocated", share(o.Asked, o.Allocated))}},
		Fix:        at(m, "find what copies the model") + ": a checkpoint that is loaded onto the card (map_location=\"cpu\"), .float() or .to(dtype) of the whole, an average or master weights; do it on the host, or piece by piece",
		Gain:       finding.Gain{Text: "the second copy", Bytes: o.Asked},
		Confidence: finding.Medium, DisprovedBy: "the line that asks makes one activation of that size", Line: m.Site(),
	}
}

// matches tells that a request is n bytes, as far as its rounding shows.
func (o *OOM) matches(n float64) bool {
	return n > 0 && math.Abs(float64(o.Asked)-n) <= math.Max(float64(o.rounding)+512, shapeShare*n)
}

// product is a request that is a product of a model's sizes.
type product struct {
	bytes            []int // of each element, the likeliest first
	of               func(s Sizes) float64
	title, fix, gain string
	sizes            func(s Sizes) string // in words
}

// finding is that the request is it, or nil.
func (p *product) finding(m *Match, o *OOM, s Sizes) *finding.Finding {
	for _, each := range p.bytes {
		n := float64(each) * p.of(s)
		if !o.matches(n) {
			continue
		}
		return &finding.Finding{
			Title:    fmt.Sprintf("%s: %d bytes × %s", p.title, each, p.sizes(s)),
			Evidence: []finding.Evidence{bytesOf("shape", int64(n), "is that product")}, Fix: p.fix, Gain: finding.Gain{Text: p.gain, Bytes: int64(n)},
			Confidence: finding.High, DisprovedBy: "another value has the same size", Line: m.Site(),
		}
	}
	return nil
}

var (
	logits = (&product{bytes: []int{4, 2, 6}, of: func(s Sizes) float64 { return float64(s.Batch) * float64(s.Context) * float64(s.Vocab) },
		title: "the request is the scores of the whole vocabulary",
		sizes: func(s Sizes) string {
			return fmt.Sprintf("batch %d × context %d × vocabulary %d", s.Batch, s.Context, s.Vocab)
		},
		fix:  "compute the loss in pieces: a fused linear cross entropy (liger-kernel, cut-cross-entropy), or chunks of the batch",
		gain: "scores, their float32 copy and gradient, but for a piece"}).finding
	attention = (&product{bytes: []int{2, 4}, of: func(s Sizes) float64 {
		return float64(s.Batch) * float64(s.Heads) * float64(s.Context) * float64(s.Context)
	},
		title: "the request is a whole attention matrix",
		sizes: func(s Sizes) string {
			return fmt.Sprintf("batch %d × heads %d × context %d²", s.Batch, s.Heads, s.Context)
		},
		fix:  "use torch.nn.functional.scaled_dot_product_attention or attn_implementation=\"flash_attention_2\": they never make it",
		gain: "the matrix of each layer"}).finding
)

func evaluation(m *Match, o *OOM, _ Sizes) *finding.Finding {
	if !o.full() || !m.within("evaluate", "validat", "eval_step", "evaluation", "test_step", "predict", "eval_loop", "test_epoch", " eval", "_eval") || m.within("backward", "training_step") {
		return nil
	}
	return &finding.Finding{
		Title:      "memory ran out while evaluating, which needs less than training: a graph is kept, or a batch is longer than those of training",
		Evidence:   finding.Says("the traceback goes through %s", m.evaluating()),
		Fix:        "evaluate under torch.inference_mode(), and with the batch and the longest sample of training (per_device_eval_batch_size in Trainer); keep results on the host",
		Gain:       finding.Gain{Text: "a third to nine tenths of what evaluation holds, where gradients were recorded"},
		Confidence: finding.Medium, DisprovedBy: "torch.is_grad_enabled() is False there, and shapes are those of training", Line: m.Site(),
	}
}

// evaluating is the frame that says that it evaluates.
func (m *Match) evaluating() string {
	for _, f := range m.Frames {
		if name := strings.ToLower(f.Func); strings.Contains(name, "eval") || strings.Contains(name, "valid") || strings.Contains(name, "test") || strings.Contains(name, "predict") {
			return fmt.Sprintf("%s (%s)", f, f.Func)
		}
	}
	return "an evaluation"
}

func inBackward(m *Match, o *OOM, _ Sizes) *finding.Finding {
	if !o.full() || !m.within("backward") || slices.ContainsFunc(m.Frames, func(f Frame) bool { return f.Func == "forward" }) {
		return nil
	}
	return &finding.Finding{
		Title:      "memory ran out in the backward pass, and the traceback names no line of the model",
		Evidence:   finding.Says("the traceback ends in %s", m.Frames[len(m.Frames)-1]),
		Fix:        "record where memory is asked for: torch.cuda.memory._record_memory_history() at the start, torch.cuda.memory._dump_snapshot(\"oom.pickle\") in an except, then warpline diagnose oom.pickle",
		Gain:       finding.Gain{Text: "the line that holds most"},
		Confidence: finding.Medium, DisprovedBy: "a frame of the forward pass in the full traceback", Line: m.Site(),
	}
}

func nearLimit(m *Match, o *OOM, _ Sizes) *finding.Finding {
	wanted := max(o.Allocated, 0) + o.Asked
	if !o.full() || o.Total <= 0 || share(wanted, o.Total) <= nearShare || o.Allocated < 0 {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("the model and its step want more than the card: %s are in use and %s more were asked for, of %s", render.Bytes(o.Allocated), render.Bytes(o.Asked), render.Bytes(o.Total)),
		Evidence: append([]finding.Evidence{{Name: "wanted", Value: share(wanted, o.Total), Unit: "share", Text: render.Percent(share(wanted, o.Total)) + " of the card are wanted"}},
			lacking(o)...),
		Fix:        "halve the batch and accumulate gradients over two; then, in this order: recompute activations (gradient_checkpointing=True), a fused attention, bfloat16 autocast, an optimizer of 8 bits. warpline plan says what each gives for the model",
		Gain:       finding.Gain{Text: "half of what activations take"},
		Confidence: finding.Medium, DisprovedBy: "a snapshot shows that values pile up from step to step", Line: m.Site(),
	}
}

// fullCard is where nothing else is to be said: the card is full, and PyTorch has less of it than one would think.
func fullCard(m *Match, o *OOM, s Sizes) *finding.Finding {
	for _, r := range memoryRules[:len(memoryRules)-1] {
		if r.judge(m, o, s) != nil {
			return nil
		}
	}
	f := &finding.Finding{
		Title: fmt.Sprintf("the card is full: %s were asked for", render.Bytes(o.Asked)), Evidence: lacking(o),
		Fix:  "nvidia-smi shows what else is on the card; with nothing there, halve the batch",
		Gain: finding.Gain{Text: "the run works"}, Confidence: finding.Low, DisprovedBy: "the rest of the message: the text has too few figures", Line: m.Site(),
	}
	if rest := o.Rest(); rest > 0 {
		f.Evidence = append(f.Evidence, bytesOf("rest", rest, "of the card are neither free nor PyTorch's: contexts, libraries, other processes"))
	}
	return f
}

// lacking is by how much a request failed, where that is known.
func lacking(o *OOM) []finding.Evidence {
	if o.Deficit() <= 0 {
		return nil
	}
	e := []finding.Evidence{bytesOf("deficit", o.Deficit(), "lacked")}
	if o.Stuck >= o.Deficit() {
		e = append(e, bytesOf("reserved_unallocated", o.Stuck, "are reserved and not in use: in one piece they would have served this request"))
	}
	return e
}
