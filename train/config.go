package train

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/zoo"
)

// Config is all that a run is told. Its JSON names are the command's flags. [Defaults] gives one that is complete.
type Config struct {
	Task   string `json:"task"`   // one of [Tasks]
	Device string `json:"device"` // as tensor.Open takes it; empty: the best there is

	Steps  int `json:"steps"`  // in all; 0: as many as Epochs take
	Epochs int `json:"epochs"` // passes over the training set; Steps wins
	Batch  int `json:"batch"`  // samples of a step

	LR          float64 `json:"lr"`
	Optimizer   string  `json:"optimizer"`    // sgd, adam, adamw
	WeightDecay float64 `json:"weight-decay"` // negative: 0.01 for adamw, else 0. adamw decays tensors of two or more dimensions, the others all
	Clip        float64 `json:"clip"`         // largest norm of all gradients; 0: any
	Average     float64 `json:"average"`      // what is saved and scored is a running mean of the weights that forgets 1-Average a step; 0: the weights

	Schedule      string `json:"schedule"`       // constant, cosine, linear
	ScheduleSteps int    `json:"schedule-steps"` // where cosine and linear reach 0; 0: Steps
	Warmup        int    `json:"warmup"`         // steps in which the rate rises

	Params Params `json:"params"` // what weight matrices are kept in

	// Options are what the optimizer and the schedule are told besides, by JSON name: beta1, beta2 and eps of adam and
	// adamw, momentum of sgd. What is absent has its default.
	Options map[string]float64 `json:"-"`

	Seed    uint64 `json:"seed"`
	Threads int    `json:"threads"` // of the CPU; 0: all

	Data      string `json:"data"`      // pictures: a folder of IDX files, IMAGES,LABELS or an .npz; text: a file. Empty: drawn digits
	Tokens    string `json:"tokens"`    // texts: a file of little-endian uint16 in place of Data
	Target    string `json:"target"`    // tabular: the column to foretell
	Objective string `json:"objective"` // tabular: regression or classification; empty: of numbers the first, of texts the other
	Drop      string `json:"drop"`      // tabular: columns that are no inputs, with commas between them

	Init   string `json:"init"` // weights to start from: a safetensors file, or a folder with config.json and model.safetensors
	Out    string `json:"-"`    // the run folder; empty: nothing is written
	Resume bool   `json:"-"`    // go on with the run in Out

	LoRA   int    `json:"lora"`   // rank of two small matrices beside that of each linear layer, which alone learn, and are added to it in the end; 0: none
	Freeze string `json:"freeze"` // patterns of paths, as in path.Match, with commas between them: parameters, or modules, that stay as they are; empty: none

	EvalEvery int    `json:"eval-every"` // steps between scores on what is held out; 0: at the end
	Patience  int    `json:"patience"`   // scores without a lower loss after which the run ends, with the weights of the best; 0: it does not end early
	Keep      string `json:"keep"`       // best: the weights of the lowest loss on what is held out; last: the last, and one checkpoint; N: the last, and N checkpoints; empty: best with Patience, else the last, and two checkpoints
	SaveEvery int    `json:"save-every"` // steps between checkpoints; 0: at the end

	AMP        AMP    `json:"amp"`              // what products are computed in
	Statistics int    `json:"statistics"`       // steps between looks at what modules and their gradients come to; 0: none
	Anomaly    bool   `json:"anomaly"`          // look at every number, and name the operation that makes the first that is none
	Accumulate Parts  `json:"accumulate"`       // parts that a batch is taken in, one after another, with the gradients added
	Head       Head   `json:"head"`             // gpt: whether all scores of a batch are kept
	InBackward bool   `json:"step-in-backward"` // gradients go into the optimizer as they come, and are let go of
	Capture    bool   `json:"capture"`          // record a step once, and do it again as one launch
	Order      string `json:"order"`            // random, sequential

	Recompute Recompute `json:"recompute"` // what is computed again in the backward pass, in place of being kept
	Slowdown  float64   `json:"slowdown"`  // of a step, that a choice of what is recomputed keeps to
	Offload   Offload   `json:"offload"`   // what lies in the host's memory while nothing needs it

	Context int     `json:"context"` // gpt and lstm, as the following
	Layers  int     `json:"layers"`
	Heads   int     `json:"heads"`
	Width   int     `json:"width"`
	Vocab   int     `json:"vocab"` // 0: the tokenizer's
	Dropout float64 `json:"dropout"`

	// AutoBatch takes for Batch the largest that fits, with a share of the memory, Reserve, left free. Memory is what the run may have
	// of its device, in bytes; 0: all.
	AutoBatch bool    `json:"-"`
	Reserve   float64 `json:"-"`
	Memory    int64   `json:"-"`

	// Profile is the folder for a profile of ProfileSteps steps, after ProfileAfter steps of warm-up; empty: none. Of a run
	// that goes on, its first steps are profiled.
	Profile      string `json:"-"`
	ProfileAfter int    `json:"-"`
	ProfileSteps int    `json:"-"`

	// Given are the settings, by JSON name, that somebody chose. Init and Resume refuse to contradict them; settings
	// that are not given follow what is there.
	Given map[string]bool `json:"-"`

	Invent bool `json:"-"` // a text if there is none, of Vocab tokens, as a dry run does
}

// Tasks are what Run can train.
var Tasks = zoo.Tasks(false)

// Defaults are the settings of a task. Those that are not about sizes and speed are PyTorch's.
func Defaults(task string) (Config, error) {
	c := Config{
		Task: task, Optimizer: "adamw", WeightDecay: -1, Schedule: recipe.Constant, SaveEvery: 500, Order: "random",
		AMP: AMPNone, Params: ParamsF32, Accumulate: 1, Head: HeadChunked, Recompute: RecomputeNone, Slowdown: usualSlowdown, Offload: OffloadNone, Context: 64, Layers: 4, Heads: 4, Width: 128, ProfileAfter: 3, ProfileSteps: 5, Reserve: 0.05,
	}
	k, err := trains(task)
	if err != nil {
		return c, err
	}
	d := k.Defaults
	c.Context, c.Layers, c.Width = cmp.Or(d.Context, c.Context), cmp.Or(d.Layers, c.Layers), cmp.Or(d.Width, c.Width)
	c.Steps, c.Batch, c.LR, c.Average = cmp.Or(d.Steps, 1000), cmp.Or(d.Batch, 128), cmp.Or(d.LR, 1e-3), d.Average
	if d.Epochs > 0 {
		c.Epochs, c.Steps = d.Epochs, 0
	}
	c.Patience = d.Patience
	if d.Decay > 0 {
		c.WeightDecay = d.Decay
	}
	return c, nil
}

// trains is the kind of model that a task trains.
func trains(task string) (*zoo.Kind, error) {
	if k := zoo.TrainedBy(task); k != nil {
		return k, nil
	}
	return nil, fail(advice.Meant(task, Tasks)+"choose one of "+strings.Join(Tasks, ", "), "there is no task %q", task)
}

// bound is what a number must be.
type bound struct {
	name  string
	value float64
	least float64
	below float64 // excluded
}

// countless is above every whole number, so that products of two stay in range.
const countless = 1 << 31

func (c *Config) bounds() []bound {
	inf := math.Inf(1)
	one := func(name string, v int) bound { return bound{name, float64(v), 1, countless} }
	none := func(name string, v int) bound { return bound{name, float64(v), 0, countless} }
	chosen := func(name string, v int) bound { // 0 stands for what follows from other settings
		if c.Given[name] {
			return one(name, v)
		}
		return none(name, v)
	}
	list := []bound{
		chosen("steps", c.Steps), chosen("epochs", c.Epochs), one("batch", c.Batch), none("schedule-steps", c.ScheduleSteps), none("warmup", c.Warmup),
		none("threads", c.Threads), none("eval-every", c.EvalEvery), none("patience", c.Patience), chosen("lora", c.LoRA), none("save-every", c.SaveEvery), none("statistics", c.Statistics),
		{"reserve", c.Reserve, 0, 1}, {"memory", float64(c.Memory), 0, inf}, {"lr", c.LR, 0, inf}, {"clip", c.Clip, 0, inf}, {"average", c.Average, 0, 1}, {"dropout", c.Dropout, 0, 1},
		one("context", c.Context), one("layers", c.Layers), one("heads", c.Heads), one("width", c.Width), chosen("vocab", c.Vocab),
	}
	if c.Profile != "" {
		list = append(list, none("profile-after", c.ProfileAfter), one("profile-steps", c.ProfileSteps))
	}
	if c.Given["weight-decay"] {
		list = append(list, bound{"weight-decay", c.WeightDecay, 0, inf})
	}
	for _, f := range recipe.Flags() {
		if v, ok := c.Options[f.Name]; ok {
			list = append(list, bound{f.Name, v, f.Least, f.Below})
		}
	}
	return list
}

// check refuses settings that have no meaning, alone or together.
func (c *Config) check() error {
	if _, err := trains(c.Task); err != nil {
		return err
	}
	for _, b := range c.bounds() {
		if !(b.value >= b.least && b.value < b.below) {
			return fail(b.hint(), "--%s is %v", b.name, cmp.Or(c.values()[b.name], any(b.value)))
		}
	}
	for _, choice := range []struct {
		name, value string
		of          []string
	}{{"optimizer", c.Optimizer, recipe.OptimizerNames()}, {"schedule", c.Schedule, recipe.ScheduleNames(false)}, {"order", c.Order, []string{"random", "sequential"}}} {
		if !slices.Contains(choice.of, choice.value) {
			return fail("choose one of "+strings.Join(choice.of, ", "), "--%s is %q", choice.name, choice.value)
		}
	}
	if _, err := ParseAMP(string(c.AMP)); err != nil {
		return err
	}
	if err := cmp.Or(c.checkRecompute(), c.checkOffload(), c.checkFreeze(), c.checkLoRA(), c.checkKeep(), c.levers()); err != nil {
		return err
	}
	if err := c.misplaced(); err != nil {
		return err
	}
	return c.together()
}

func (b bound) hint() string {
	if math.IsInf(b.below, 1) {
		return fmt.Sprintf("give a number from %v up", b.least)
	}
	return fmt.Sprintf("give a number from %.10g to below %.10g", b.least, b.below)
}

// misplaced refuses settings that the task or the optimizer would ignore.
func (c *Config) misplaced() error {
	for _, rule := range []struct {
		ok    bool
		names string
		of    string
		has   string
	}{
		{c.writes(), "tokens context layers width vocab dropout head", advice.List(zoo.Tasks(true)), "the task " + c.Task},
		{c.attends(), "heads", "gpt", "the task " + c.Task},
		{c.tabulates(), "target objective drop", "tabular", "the task " + c.Task},
		{c.ends(), "schedule-steps", "--schedule " + advice.List(recipe.ScheduleNames(true)), "a " + c.Schedule + " rate"},
	} {
		for _, name := range strings.Fields(rule.names) {
			if !rule.ok && c.Given[name] {
				return fail(fmt.Sprintf("leave --%s out", name), "--%s is for %s, and this run has %s", name, rule.of, rule.has)
			}
		}
	}
	if o := recipe.OptimizerOf(c.Optimizer); o != nil && o.Averages && c.Average > 0 && c.Given["average"] {
		return fail("give --average 0, or another optimizer", "--optimizer %s has a mean of the weights of its own, and --average %v asks for another", c.Optimizer, c.Average)
	}
	own := c.own()
	for _, f := range recipe.Flags() {
		if _, ok := own[f.Name]; c.Given[f.Name] && !ok {
			return fail(fmt.Sprintf("leave --%s out", f.Name), "--%s is for %s, and this run has --%s %s", f.Name, f.Of(), f.Owners[0].Flag, c.values()[f.Owners[0].Flag])
		}
	}
	return nil
}

// writes tells a task that learns from text.
func (c *Config) writes() bool {
	k := zoo.TrainedBy(c.Task)
	return k != nil && k.Data == zoo.Text
}

// attends tells a task whose model writes, and has attention.
func (c *Config) attends() bool {
	if !c.writes() {
		return false
	}
	a := zoo.Writer(c.Task, zoo.Writing{Heads: 1})
	return a.Attends()
}

// tabulates tells a task that learns from a table.
func (c *Config) tabulates() bool {
	k := zoo.TrainedBy(c.Task)
	return k != nil && k.Data == zoo.Table
}

// textless tells a run on text that is given none.
func (c *Config) textless() bool { return c.writes() && c.Data == "" && c.Tokens == "" }

// ends tells a learning rate that is about a number of steps.
func (c *Config) ends() bool {
	s := recipe.ScheduleOf(c.Schedule)
	return s != nil && s.Ends
}

// own are the settings of this run's optimizer and schedule, with their defaults where none are given.
func (c *Config) own() recipe.Values {
	all := recipe.Values{}
	for _, f := range recipe.Flags() {
		for _, o := range f.Owners {
			if o.Flag == "optimizer" && o.Name == c.Optimizer || o.Flag == "schedule" && o.Name == c.Schedule {
				all[f.Name] = o.Setting.Default
				if v, ok := c.Options[f.Name]; ok {
					all[f.Name] = v
				}
			}
		}
	}
	return all
}

// together refuses settings that contradict each other.
func (c *Config) together() error {
	switch {
	case c.Data != "" && c.Tokens != "":
		return fail("give one of them", "--data %s and --tokens %s are two data sets", c.Data, c.Tokens)
	case c.tabulates() && c.Data == "":
		return fail("give --data FILE.csv", "%s has no table to learn from", c.Task)
	case c.tabulates() && c.Target == "" && c.Init == "":
		return fail("give --target COLUMN", "%s is not told which column of %s to foretell", c.Task, c.Data)
	case !slices.Contains([]string{"", string(table.Regression), string(table.Classification)}, c.Objective):
		return fail("choose regression or classification", "--objective is %q", c.Objective)
	case c.textless() && (!c.Invent || c.Vocab == 0 && c.Init == ""):
		hint := "give --data FILE.txt, or --tokens FILE with --vocab N"
		if c.Invent {
			hint += "; or --vocab N alone, for a dry run of text that there is not yet"
		}
		return fail(hint, "%s has no text to learn from", c.Task)
	case c.attends() && c.Init == "" && c.Width%c.Heads != 0: // of Init's sizes, its own are checked
		return fail("choose a --width that --heads divides", "--width %d is not a multiple of --heads %d", c.Width, c.Heads)
	case c.Anomaly && c.Capture:
		return fail("leave --capture out while you look", "--anomaly looks at each operation, and --capture makes them one launch")
	case c.Statistics > 0 && c.Capture:
		return fail("leave one of them out", "--statistics looks at each module, and --capture makes the step one launch")
	case c.Statistics > 0 && c.Anomaly:
		return fail("leave one of them out", "--statistics computes with what modules make, and --anomaly stops at squares that are infinite")
	case c.Given["reserve"] && !c.AutoBatch:
		return fail("leave --reserve out, or give --batch auto", "--reserve is what --batch auto leaves free")
	case c.ends() && c.ScheduleSteps > 0 && c.Warmup >= c.ScheduleSteps:
		return fail("give a shorter --warmup", "--warmup %d leaves nothing of --schedule-steps %d", c.Warmup, c.ScheduleSteps)
	}
	return c.Params.contradicts(c)
}

// resumable refuses a resume of nothing, and one that starts elsewhere.
func (c *Config) resumable() error {
	switch {
	case c.Out == "":
		return fail("give --out RUN, the folder of the run to go on with", "--resume without --out")
	case c.AutoBatch:
		return fail("leave --batch out", "--batch auto, and --resume goes on with the batch of the run in %s", c.Out)
	case c.Given["init"]:
		return fail("leave --init out: the checkpoint has the weights", "--resume and --init %s are two places to start from", c.Init)
	}
	return nil
}

// settle fills in what follows from other settings.
func (c *Config) settle() {
	if c.WeightDecay < 0 {
		c.WeightDecay = recipe.OptimizerOf(c.Optimizer).Decay
	}
	if !c.Given["average"] && (c.Init != "" || c.Order == "sequential" || recipe.OptimizerOf(c.Optimizer).Averages) {
		c.Average = 0
	}
	for _, p := range []*string{&c.Data, &c.Tokens, &c.Init} {
		*p = dataset.Absolute(*p)
	}
}

// values are the settings by JSON name, of an optimizer and a schedule those of this run's.
func (c *Config) values() map[string]any {
	out := map[string]any{}
	v := reflect.ValueOf(*c)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("json"); name != "-" {
			out[name] = v.Field(i).Interface()
		}
	}
	for name, v := range c.own() {
		out[name] = v
	}
	return out
}

// changeable are the settings that a resume may give anew: they do not touch the numbers of the steps that were done.
var changeable = []string{"steps", "epochs", "device", "threads", "eval-every", "save-every", "recompute", "slowdown", "offload", "accumulate", "head", "step-in-backward", "capture", "anomaly", "statistics"}

// resumed is the stored configuration of a run with what is given now.
func (c *Config) resumed(stored *Config) (*Config, error) {
	then, now := stored.values(), c.values()
	for name, v := range c.Options { // also of an optimizer that is not named, because the run has it
		now[name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(c.Given)) {
		v, known := now[name]
		if !known || slices.Contains(changeable, name) {
			continue
		}
		if s, ok := v.(string); ok && (name == "data" || name == "tokens") {
			v = dataset.Absolute(s)
		}
		switch {
		case then[name] == v:
		case name == "task":
			return nil, fail("leave the task out, or start another run", "the run in %s trains %s, not %s", c.Out, then[name], v)
		case then[name] == "", then[name] == nil:
			return nil, fail("leave it out, or start another run", "--%s %v contradicts the run in %s, which has none", name, v, c.Out)
		default:
			return nil, fail("leave it out, or start another run", "--%s %v contradicts the run in %s, which has %v", name, v, c.Out, then[name])
		}
	}
	r := *stored
	for _, name := range changeable {
		if c.Given[name] {
			r.set(name, now[name])
		}
	}
	if c.Given["epochs"] && !c.Given["steps"] {
		r.Steps = 0
	}
	r.Out, r.Resume, r.Given, r.Memory = c.Out, true, c.Given, c.Memory
	r.Profile, r.ProfileAfter, r.ProfileSteps = c.Profile, c.ProfileAfter, c.ProfileSteps
	return &r, r.beyond(stored)
}

func (c *Config) set(name string, value any) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == name {
			v.Field(i).Set(reflect.ValueOf(value))
		}
	}
}

// beyond refuses steps after the end of a schedule that the first run set.
func (c *Config) beyond(stored *Config) error {
	if end := max(stored.ScheduleSteps, stored.Steps); c.ends() && c.Steps > end {
		return fail(fmt.Sprintf("give --steps %d or fewer, or start another run with --schedule-steps %d", end, c.Steps),
			"--steps %d contradicts the %s schedule of the run in %s, which ends at step %d", c.Steps, c.Schedule, c.Out, end)
	}
	return nil
}

// MarshalJSON writes a flat object, of Options those that the run has, all of them.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.values()) }

// UnmarshalJSON reads what MarshalJSON wrote, and leaves what raw does not name. Unknown names are of another version.
func (c *Config) UnmarshalJSON(raw []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	options := maps.Clone(c.Options)
	for _, f := range recipe.Flags() {
		value, ok := all[f.Name]
		if !ok {
			continue
		}
		var v float64
		if err := json.Unmarshal(value, &v); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if options == nil {
			options = map[string]float64{}
		}
		options[f.Name] = v
		delete(all, f.Name)
	}
	rest, err := json.Marshal(all)
	if err != nil {
		return err
	}
	type plain Config
	dec := json.NewDecoder(bytes.NewReader(rest))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*plain)(c)); err != nil {
		return err
	}
	c.Options = options
	return nil
}
