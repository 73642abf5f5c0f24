package vetpy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pysyntax"
)

func (c *checker) reads() {
	if !c.gpu {
		return
	}
	for _, l := range c.loops {
		if l.alone || !c.backwardOf(l) || c.any(l, stepsByClosure) {
			continue
		}
		var all []*event
		for i := l.from; i < l.to; i++ {
			e := &c.events[i]
			if e.kind == evRead && c.ofEachTurn(l, e) && (e.on.is(isGraph|isOutput|isMoved) || e.what == "item" && !countName().MatchString(e.onText)) && !c.acts(e) && !slices.ContainsFunc(all, func(f *event) bool { return f.node == e.node }) {
				all = append(all, e)
			}
		}
		if len(all) == 0 {
			continue
		}
		var where []string
		for _, e := range all {
			where = append(where, fmt.Sprintf("%s: %s", c.lineOf(e), shortened(c.text(e.node))))
		}
		c.say(&say{rule: "R13", at: all[0].node, title: fmt.Sprintf("the host waits for the device %s in every step", times(len(all))), sure: finding.Medium,
			evidence: says(where),
			fix:      "add up on the device (total += loss.detach()), and read every so many steps: if step % 100 == 0: print(total.item())",
			gain:     "the time in which the device waits for the next launches: up to half of a step of a small model", disproved: "a trace in which the device is busy all the time"})
	}
}

// ofEachTurn tells whether an event comes in each turn of a loop that trains: in it, or in a loop over parts of the model or the step.
func (c *checker) ofEachTurn(l *loop, e *event) bool {
	if e.guarded {
		return false
	}
	for in := e.loop; in != l; in = in.parent {
		if in == nil || in.guards > 0 || in.alone || in.lighting || c.backwardOf(in) || c.overLoader(in) || c.hasKind(in, evForward) {
			return false
		}
	}
	return true
}

var acting = pattern(`(?i)(^|_)(act|action|policy|choose|select)($|_)`)

// countName matches what is counted, mostly on the host.
var countName = pattern(`(?i)^[\w.]*(count|num|len|idx|index|size)`)

// stepsByClosure tells whether an optimizer goes backward itself, many times in a step.
func stepsByClosure(e *event) bool { return e.kind == evStep && e.arg.fn != nil }

// acts tells whether what a model gave without recording is brought to the host, as an agent does with what it is about to do.
func (c *checker) acts(e *event) bool {
	if e.fn != nil && acting().MatchString(e.fn.node.Name) || e.call != nil && acting().MatchString(c.assignedTo(e.call)) {
		return true
	}
	return e.on.is(isFrozen) && (e.what == "cpu" || e.what == "numpy" || e.what == "tolist")
}

// says are places as evidence, if there are several.
func says(where []string) []finding.Evidence {
	if len(where) < 2 {
		return nil
	}
	return finding.Says("%s", strings.Join(where, "; "))
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// backwardOf tells whether backward is called in a turn of a loop itself, not in a loop within it.
func (c *checker) backwardOf(l *loop) bool {
	return l.lighting && l.fn.node.Name == "training_step" || c.any(l, func(e *event) bool { return e.kind == evBackward && e.loop == l })
}

// withArg is a call as it is written, with an argument by name that is added, or stands in the place of another.
func (c *checker) withArg(x *pysyntax.Call, name, value string) string {
	args, there := make([]string, 0, len(x.Args)+1), false
	for _, a := range x.Args {
		if a.Name == name {
			there = true
			args = append(args, name+"="+value)
		} else {
			args = append(args, c.argText(a))
		}
	}
	if !there {
		args = append(args, name+"="+value)
	}
	return c.text(x.Func) + "(" + strings.Join(args, ", ") + ")"
}

// argText is an argument as it is written.
func (c *checker) argText(a pysyntax.Arg) string {
	if a.Name != "" {
		return a.Name + "=" + c.text(a.Value)
	}
	return a.Star + c.text(a.Value)
}

func (c *checker) pageable() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evMove || e.call == nil || e.on.is(isModule) {
			continue
		}
		asked := isTrue(arg(e.call, "non_blocking", -1))
		switch {
		case asked && e.on.is(isBatch) && e.on.is(isHost) && !e.on.is(isPinned) && e.on.call != nil && c.unpinned(e.on.call):
			c.say(&say{rule: "R14", at: e.node, title: "a copy is asked not to block, from memory that is not pinned", sure: finding.Medium,
				evidence: finding.Says("the loader of %s has no pin_memory=True", c.line(c.f.Line(e.on.call))),
				fix:      "DataLoader(..., pin_memory=True)", gain: "copies at the full rate of the link, beside the step", disproved: "batches that the collate function pins itself"})
		case !asked && e.on.is(isPinned):
			c.say(&say{rule: "R14", at: e.node, title: "memory is pinned, and the copy waits all the same", sure: finding.Medium,
				fix: c.withArg(e.call, "non_blocking", "True"), gain: "the copy runs beside the program", disproved: "pinned memory that is used again, for copies that do not block"})
		}
	}
}

func (c *checker) unpinned(call *pysyntax.Call) bool {
	if pathTraits(c.peek(call.Func).path)&isLoader == 0 || hasStar(call) {
		return false
	}
	p := arg(call, "pin_memory", -1)
	return p == nil || isFalse(p)
}

// hasStar tells whether a call has arguments that are not written out.
func hasStar(call *pysyntax.Call) bool {
	return slices.ContainsFunc(call.Args, func(a pysyntax.Arg) bool { return a.Star != "" })
}

// heavy matches what takes long for a sample.
var heavy = pattern(`Image\.open|cv2\.|imread|librosa|torchaudio\.load|read_image|decode_|nib\.load|Random\w*(Crop|Flip|Rotation|Affine|Perspective|Blur|Erasing|Invert|Posterize|Solarize|Sharpness|Zoom\w*|Apply|Order|Choice|Grayscale)\(|Resize\(|ColorJitter|albumentations|AutoAugment|RandAugment`)

func (c *checker) loaders() {
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCall || !strings.HasSuffix(e.what, ".DataLoader") || hasStar(e.call) {
			continue
		}
		c.shuffles(e)
		n := arg(e.call, "num_workers", 5)
		if num, ok := n.(*pysyntax.Number); n != nil && (!ok || num.Text != "0") {
			continue
		}
		if !c.gpu || !c.heavyData(e) {
			continue
		}
		c.say(&say{rule: "R17", at: e.node, title: "samples are decoded and transformed without workers, between the steps", sure: finding.Medium,
			fix: "DataLoader(..., num_workers=4, persistent_workers=True)  # more, until the time of a step stays the same", gain: "the time in which steps wait for their batch",
			disproved: "a trace in which no step waits for its batch"})
	}
}

// heavyData tells whether the data set of a loader has much to do for each sample.
func (c *checker) heavyData(e *event) bool {
	if e.arg != nil && e.arg.class != nil {
		if m := e.arg.class.methods["__getitem__"]; m != nil {
			text := c.f.Text(m.node)
			for name, other := range e.arg.class.methods {
				if strings.Contains(text, "self."+name+"(") {
					text += c.f.Text(other.node)
				}
			}
			return heavy().MatchString(text) || c.heavyFile() && strings.Contains(text, "transform")
		}
		return false
	}
	if e.arg != nil && e.arg.path != "" && strings.Contains(e.arg.path, "ImageFolder") {
		return true
	}
	return e.arg != nil && strings.HasPrefix(e.arg.path, "torchvision.datasets.") && c.heavyFile()
}

// shuffles judges the order of a loader for training.
func (c *checker) shuffles(e *event) {
	target := strings.ToLower(c.assignedTo(e.call))
	if key := c.keyOf(e.call); key != "" {
		target = strings.ToLower(key)
	} else if target == "" && e.fn != nil && strings.Count(c.f.LineText(c.f.Line(e.call)), "DataLoader(") == 1 {
		target = strings.ToLower(e.fn.node.Name)
	}
	if strings.Contains(target, "eval") || !strings.Contains(target, "train") && !c.trainsOver(e.call) {
		return
	}
	for _, name := range []string{"shuffle", "sampler", "batch_sampler"} {
		if x := arg(e.call, name, -1); x != nil && !isFalse(x) {
			return
		}
	}
	if isFalse(arg(e.call, "shuffle", -1)) && recurrent().MatchString(c.f.String()) {
		return // a state that goes from batch to batch
	}
	if c.onlyEvaluates(e.call) {
		return
	}
	if arg(e.call, "", 2) != nil || c.iterable(e) || c.orderly() || c.madeUp(e) {
		return
	}
	c.say(&say{rule: "V23", at: e.node, title: "the training data is not shuffled", sure: finding.Medium, fix: "DataLoader(..., shuffle=True)", gain: "batches that differ from epoch to epoch",
		disproved: "a data set that shuffles itself, or whose order matters"})
}

// keyOf is the key under which a dictionary has a value that stands in it, or empty.
func (c *checker) keyOf(call *pysyntax.Call) string {
	from, _ := call.Span()
	p := c.f.Position(from)
	if m := keyed().FindStringSubmatch(c.f.LineText(p.Line)[:p.Column-1]); m != nil {
		return m[1]
	}
	return ""
}

var keyed = pattern(`["'](\w+)["']\s*:\s*$`)

// trainsOver tells whether a loop over a loader trains, in each of several epochs.
func (c *checker) trainsOver(loader *pysyntax.Call) bool {
	return slices.ContainsFunc(c.training, func(l *loop) bool { return c.over(l, loader) && l.parent != nil && !c.backwardOf(l.parent) })
}

// over tells whether a loop goes over a loader.
func (c *checker) over(l *loop, loader *pysyntax.Call) bool {
	return l.iter.call == loader || slices.ContainsFunc(l.iter.elems, func(v *value) bool { return v.call == loader })
}

// onlyEvaluates tells whether all loops over a loader that are seen never go backward.
func (c *checker) onlyEvaluates(loader *pysyntax.Call) bool {
	seen := false
	for _, l := range c.loops {
		if c.over(l, loader) {
			if seen = true; c.any(l, differentiates) {
				return false
			}
		}
	}
	return seen
}

var recurrent = pattern(`\bnn\.(LSTM|GRU|RNN)`)

// iterable tells whether a data set decides over its order itself.
func (c *checker) iterable(e *event) bool {
	return c.mentions("IterableDataset", "streaming=True") || strings.Contains(strings.ToLower(c.text(e.call)), "iter") ||
		e.arg != nil && e.arg.path != "" && !strings.HasPrefix(e.arg.path, "torch") && !strings.HasPrefix(e.arg.path, "builtins.")
}

// madeUp tells whether a data set of the file draws its samples: their order does not matter.
func (c *checker) madeUp(e *event) bool {
	return e.arg != nil && e.arg.class != nil && drawn().MatchString(c.f.Text(e.arg.class.node))
}

var drawn = pattern(`\.(rand|randn|randint|normal|uniform)\(`)

// ordered tells whether a program's data has an order.
func (c *checker) ordered() bool {
	s := strings.ToLower(c.f.String())
	return strings.Contains(s, "time series") || strings.Contains(s, "timeseries") || strings.Contains(s, "shuffle(")
}

// assignedTo is the variable that a call's result gets, as it is written.
func (c *checker) assignedTo(call *pysyntax.Call) string {
	from, _ := call.Span()
	p := c.f.Position(from)
	before, _, ok := strings.Cut(c.f.LineText(p.Line)[:p.Column-1], "=")
	if !ok || strings.Contains(before, "(") {
		return ""
	}
	return strings.TrimSpace(before)
}

func (c *checker) dataParallel() {
	for i := range c.events {
		if e := &c.events[i]; e.kind == evCall && (e.what == "torch.nn.DataParallel" || strings.HasPrefix(e.what, "torch.nn.parallel.") && strings.HasPrefix(strings.ToLower(strings.ReplaceAll(e.what, "_", "")), "torch.nn.parallel.dataparallel")) && !c.onlyAsked(e) {
			c.say(&say{rule: "R38", at: e.node, title: "DataParallel copies the model in every step and drives all devices from one thread", sure: finding.High,
				fix: "DistributedDataParallel(model, device_ids=[local_rank]), started by torchrun --nproc-per-node=GPUS", gain: "most of the time in which devices wait for the host",
				disproved: "a single device, where it does nothing"})
		}
	}
}

// onlyAsked tells whether a model that is copied to several devices is known to be asked only: beside a training, or for one answer.
func (c *checker) onlyAsked(e *event) bool {
	name, trains := c.assignedTo(e.call), has(c.events, differentiates)
	if name == "" {
		return false
	}
	asked, learns := false, false // learns: or is a part of each step
	for i := range c.events {
		f := &c.events[i]
		if f.kind != evForward || f.onText != name && !slices.Contains(f.on.names, name) && (f.on.call == nil || e.arg == nil || f.on.call != e.arg.call) {
			continue
		}
		learns = learns || f.modes&noGrad == 0 || f.loop != nil && !f.guarded && c.backwardOf(f.loop)
		asked = asked || trains || f.loop == nil && strings.HasPrefix(f.onText, "self.")
	}
	return asked && !learns
}

func (c *checker) timed() {
	if !c.gpu {
		return
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evElapsed || e.on == nil || e.on.call == nil {
			continue
		}
		from := -1
		for j := i - 1; j >= 0; j-- {
			if c.events[j].kind == evClock && c.events[j].node == pysyntax.Node(e.on.call) {
				from = j
				break
			}
		}
		if from < 0 || c.events[from].loop != e.loop && e.loop.within(c.events[from].loop) {
			continue // not found, or a time since before the loop, of which the last launches are little
		}
		if w := c.unwaited(c.events[from:i], e); w != nil {
			c.say(&say{rule: "R48", at: e.node, title: "the clock is read while the device is still at work", sure: finding.High,
				evidence: finding.Says("%s is launched at %s, and nothing waits for it", shortened(c.text(w.node)), c.lineOf(w)),
				fix:      "torch.cuda.synchronize()  # before the clock is read, at both ends; or torch.utils.benchmark.Timer", gain: "figures that are true", disproved: "a device that is the CPU"})
		}
	}
}

// unwaited is the last work of the device in a span that nothing waits for before the clock is read. What only the last of many steps
// leaves out does not matter.
func (c *checker) unwaited(span []event, end *event) *event {
	foreign := 0
	for i := len(span) - 1; i >= 0; i-- {
		e := &span[i]
		switch e.kind {
		case evSync, evRead:
			if e.kind == evRead && (e.guarded && !e.arm.impliedBy(end.arm) || e.on.is(isHost)) {
				continue
			}
			return nil
		case evCall:
			if n := foreignCall(e); n > 0 {
				foreign += n
			}
			if foreign >= maxForeign {
				return nil
			}
		case evForward, evBackward, evStep, evWork:
			for l := e.loop; l != nil && l != end.loop; l = l.parent {
				if c.hasKind(l, evBackward) && !c.benchmark(l) || c.overLoader(l) || c.any(l, waits) {
					return nil
				}
			}
			if !end.loop.within(e.loop) && !e.loop.within(end.loop) {
				return nil
			}
			return e
		}
	}
	return nil
}

// benchmark tells whether a loop repeats a step so many times, of which nothing is read.
func (c *checker) benchmark(l *loop) bool {
	return l.iter.is(isNumber) && !c.any(l, func(e *event) bool {
		return e.kind == evRead || e.kind == evSync || e.loop != l && e.kind == evBackward
	})
}

// waits tells whether the host waits for the device in each turn.
func waits(e *event) bool {
	return e.kind == evSync || e.kind == evRead && !e.guarded && !e.on.is(isHost)
}

// maxForeign is how many functions of other files may come between the work and the clock: more of them take the time that is meant.
const maxForeign = 3

// foreignCall tells whether an event calls a function of another file: maxForeign if that is given a tensor, for which it may wait.
func foreignCall(e *event) int {
	if e.call == nil || strings.HasPrefix(e.what, "torch.") || strings.HasPrefix(e.what, "builtins.") || strings.HasPrefix(e.what, "dropped.") {
		return 0
	}
	if slices.ContainsFunc(e.args, func(v *value) bool { return v.is(isGraph | isOutput | isTensor) }) {
		return maxForeign
	}
	return 1
}

func (c *checker) emptyCache() {
	for i := range c.events {
		if e := &c.events[i]; e.kind == evEmptyCache && e.loop != nil && !e.guarded && c.backwardOf(e.loop) {
			c.say(&say{rule: "V10", at: e.node, title: "the cache is emptied in every step", sure: finding.High, fix: "leave it out; memory that others need is freed by it once, behind the loop",
				gain: "the time that the driver takes to give memory anew, in every step", disproved: "a second program on the same card that needs the memory between two steps"})
		}
	}
}

// deprecatedModule is what has another name since PyTorch 2.4.
const deprecatedModule = "torch.cuda.amp"

func (c *checker) deprecated() {
	var all []pysyntax.Node
	pysyntax.Inspect(c.f.Body, func(n pysyntax.Node) bool {
		switch n := n.(type) {
		case *pysyntax.ImportFrom:
			if n.Module == deprecatedModule {
				all = append(all, n)
			}
		case *pysyntax.Attribute:
			if c.text(n) == deprecatedModule {
				all = append(all, n)
			}
		}
		return true
	})
	if len(all) == 0 {
		return
	}
	c.say(&say{rule: "V11", at: all[0], title: fmt.Sprintf("torch.cuda.amp is deprecated (used %s)", times(len(all))), sure: finding.High,
		fix: `torch.amp.autocast("cuda", ...) and torch.amp.GradScaler("cuda")`, gain: "no warnings, and a program that runs on other devices", disproved: "a PyTorch before 2.4"})
}

func (c *checker) setEpoch() {
	if c.mentions("set_epoch") || !slices.ContainsFunc(c.training, func(l *loop) bool { return l.parent != nil || l.lighting }) {
		return
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != evCall || !strings.HasSuffix(e.what, ".DistributedSampler") || isFalse(arg(e.call, "shuffle", 3)) {
			continue
		}
		if target := strings.ToLower(c.assignedTo(e.call)); strings.Contains(target, "val") || strings.Contains(target, "test") {
			continue
		}
		c.say(&say{rule: "V12", at: e.node, title: "all epochs have the same order: the sampler is never told the epoch", sure: finding.High,
			fix: "sampler.set_epoch(epoch)  # at the beginning of each epoch", gain: "batches that differ from epoch to epoch", disproved: "a loader of another file that calls it"})
	}
}

func (c *checker) flags() {
	var fast, same *event
	for i := range c.events {
		e := &c.events[i]
		switch {
		case e.kind != evCall:
		case e.what == "set torch.backends.cudnn.benchmark":
			fast = e
		case e.what == "set torch.backends.cudnn.deterministic" || e.what == "torch.use_deterministic_algorithms" && len(e.call.Args) > 0 && isTrue(e.call.Args[0].Value):
			if !c.unset(e) {
				same = e
			}
		}
	}
	if t := c.contradicting(); t != nil {
		fast, same = t, t
	}
	if fast == nil || same == nil || fast.arm.excludes(same.arm) {
		return
	}
	c.say(&say{rule: "V13", at: fast.node, title: "benchmarking is on, and determinism is asked for", sure: finding.High, evidence: finding.Says("%s at %s", c.text(same.node), c.lineOf(same)),
		fix: "torch.backends.cudnn.benchmark = False", gain: "the same result in every run", disproved: "flags that are set anew before the training"})
}

// contradicting is a Trainer of Lightning that is given both flags.
func (c *checker) contradicting() *event {
	for i := range c.events {
		e := &c.events[i]
		if e.kind == evCall && strings.HasSuffix(e.what, ".Trainer") && isTrue(arg(e.call, "benchmark", -1)) && isTrue(arg(e.call, "deterministic", -1)) {
			return e
		}
	}
	return nil
}

// unset tells whether a flag for determinism stands beside one that switches benchmarking off.
func (c *checker) unset(e *event) bool {
	return has(c.events, func(f *event) bool {
		return f.kind == evCall && f.what == "unset torch.backends.cudnn.benchmark" && f.arm == e.arm && f.fn == e.fn
	})
}

func (c *checker) anomalyMode() {
	for i := range c.events {
		e := &c.events[i]
		on := e.kind == evCall && strings.HasSuffix(e.what, "autograd.set_detect_anomaly") && e.call != nil && isTrue(arg(e.call, "mode", 0)) && !e.guarded && e.arm == nil
		if on || e.kind == evBackward && e.modes&anomaly != 0 && e.arm == nil {
			c.say(&say{rule: "V24", at: e.node, title: "anomaly mode is on for the whole training", sure: finding.Medium, fix: "torch.autograd.set_detect_anomaly(False)  # once the bad value is found",
				gain: "up to half of the time of a step", disproved: "a run that looks for a NaN"})
		}
	}
}
