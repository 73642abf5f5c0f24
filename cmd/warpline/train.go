package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/live"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/web"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/train"
)

const trainLong = `Train a model and leave it in a run folder.

%s
Defaults differ by task. The learning rate is constant unless --schedule says otherwise. Besides, digits has --lr 0.003
and lstm 0.004, and both score and save a running mean of their weights (--average 0.99) unless they start from --init
or read --order sequential.

The run folder has config.json, tokenizer.json for text, model.safetensors with PyTorch's names, log.jsonl, loss.svg and
checkpoints. Ctrl-C stops after the step under way and keeps a checkpoint, from which --resume goes on.`

const trainExample = `  warpline train
  warpline train digits --data mnist/ --epochs 5 --out runs/mnist
  warpline train gpt --data input.txt --steps 2000
  warpline train gpt --init gpt2/ --tokens train.bin --context 1024 --batch 4
  warpline train --resume --out runs/mnist --steps 2000`

// tasks are lines of help.
func tasks() string {
	var b strings.Builder
	for _, k := range zoo.Kinds {
		fmt.Fprintf(&b, "  %-8s  %s\n", k.Task, k.Help)
	}
	return b.String()
}

// byTask tells a default that differs by task: "digits and mlp 128, gpt 24". Tasks that have none, 0, are left out.
func byTask(of func(c *train.Config) any) string {
	var values []any
	names := map[any][]string{}
	for _, task := range train.Tasks {
		c, err := train.Defaults(task)
		if err != nil {
			continue
		}
		v := of(&c)
		if v == 0 {
			continue
		}
		if names[v] = append(names[v], task); len(names[v]) == 1 {
			values = append(values, v)
		}
	}
	var parts []string
	for _, v := range values {
		parts = append(parts, fmt.Sprintf("%s %v", advice.List(names[v]), v))
	}
	return strings.Join(parts, ", ")
}

// sized is a size of the models of texts.
func sized(of func(c *train.Config) int) func(c *train.Config) any {
	return func(c *train.Config) any {
		if !slices.Contains(zoo.Tasks(true), c.Task) {
			return 0
		}
		return of(c)
	}
}

func newTrain() *cobra.Command {
	var c train.Config
	cmd := &cobra.Command{
		Use: "train [" + strings.Join(train.Tasks, "|") + "]", Short: "Train a model", Long: fmt.Sprintf(trainLong, tasks()), Example: trainExample,
		Args: from(0, 1), ValidArgs: train.Tasks,
	}
	trainFlags(cmd.Flags(), &c)
	listen := cmd.Flags().String("listen", "", "show the run in a browser, on an address such as 127.0.0.1:8080 or port 0 for any that is free; of this machine alone unless another host is given")
	dry := cmd.Flags().StringSlice("dry-run", nil, "compute and write nothing: tell what the run needs on cards that nobody has to have, h100-80,l4: memory to the byte, largest batch; exit 1 if one is too small")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("dry-run") {
			return runTrain(cmd, args, &c, *listen)
		}
		merged, err := merge(cmd.Flags(), args, &c)
		if err != nil {
			return err
		}
		for _, name := range []string{"listen", "profile", "profile-after", "profile-steps"} {
			if cmd.Flags().Changed(name) {
				newScreen(cmd).Note("--" + name + " does nothing in a dry run: no step is made")
			}
		}
		return dryRun(cmd, merged, *dry)
	}
	return cmd
}

func trainFlags(f *pflag.FlagSet, c *train.Config) {
	f.SortFlags = false
	f.StringVar(&c.Out, "out", "", "run folder (default runs/TASK-N)")
	f.BoolVar(&c.Resume, "resume", false, "go on with the run in --out, up to --steps")
	f.StringVar(&c.Init, "init", "", "weights to start from: a safetensors file, or a folder with config.json and model.safetensors")
	dataFlags(f, &c.Data, &c.Tokens)
	tableFlags(f, c)
	deviceFlags(f, &c.Device, &c.Threads, true)
	f.IntVar(&c.Steps, "steps", 0, "steps in all; wins over --epochs ("+byTask(func(c *train.Config) any { return c.Steps })+")")
	f.IntVar(&c.Epochs, "epochs", 0, "passes over the training set ("+byTask(func(c *train.Config) any { return c.Epochs })+")")
	f.Var(batchFlag{c}, "batch", "samples of a step, or auto for as many as fit ("+byTask(func(c *train.Config) any { return c.Batch })+")")
	f.Var((*percent)(&c.Reserve), "reserve", "share of the memory that --batch auto leaves free (default 5%)")
	f.Var((*size)(&c.Memory), "memory", "bytes that the run may have of the device's memory, as in 8GiB (default all)")
	f.Float64Var(&c.LR, "lr", 0, "learning rate ("+byTask(func(c *train.Config) any { return c.LR })+")")
	f.StringVar(&c.Optimizer, "optimizer", "", strings.Join(recipe.OptimizerNames(), ", ")+" (default adamw)")
	for _, s := range recipe.Flags() {
		f.Var(&option{c, s.Name}, s.Name, s.Help())
	}
	f.Float64Var(&c.WeightDecay, "weight-decay", 0, recipe.DecayHelp())
	f.Float64Var(&c.Clip, "clip", 0, "largest norm of all gradients together; 0: any")
	f.Float64Var(&c.Average, "average", 0, "score and save a running mean of the weights that keeps this share at each step; 0: the weights themselves")
	f.StringVar(&c.Schedule, "schedule", "", "of the learning rate: "+recipe.ScheduleHelp()+" (default constant)")
	f.IntVar(&c.ScheduleSteps, "schedule-steps", 0, "where "+advice.List(recipe.ScheduleNames(true))+" end (default the first run's --steps)")
	f.IntVar(&c.Warmup, "warmup", 0, "steps in which the learning rate rises")
	f.Uint64Var(&c.Seed, "seed", 0, "of everything that is drawn")
	f.StringVar(&c.Order, "order", "", "random, or sequential: batch by batch from the start, nothing held out (default random)")
	f.StringVar(&c.Freeze, "freeze", "", "`patterns` of paths, with commas between them, of parameters or modules that stay as they are: 'layer1,*.bias'; one that matches nothing tells all paths")
	f.IntVar(&c.LoRA, "lora", 0, "rank of two small matrices beside that of each linear layer: they alone learn, and in the end are added to it; 0: none")
	f.IntVar(&c.EvalEvery, "eval-every", 0, "steps between scores on what is held out (default at the end)")
	f.IntVar(&c.Patience, "patience", 0, "scores without a lower loss after which the run ends, with the weights of the best; without --eval-every one an epoch; 0: it does not end early ("+byTask(func(c *train.Config) any { return c.Patience })+")")
	f.StringVar(&c.Keep, "keep", "", "`what` the run leaves: best for the weights of the lowest loss on what is held out, scored once an epoch without --eval-every; last for the last ones and one checkpoint, or a number of checkpoints beside the last ones (default best with --patience, else 2)")
	f.IntVar(&c.SaveEvery, "save-every", 0, "steps between checkpoints; 0: at the end (default 500)")
	f.StringVar(&c.Profile, "profile", "", "leave a profile of some steps in a folder, for warpline profile")
	f.Lookup("profile").NoOptDefVal = train.ProfileInRun
	f.IntVar(&c.ProfileAfter, "profile-after", 0, "steps before it (default 3)")
	f.IntVar(&c.ProfileSteps, "profile-steps", 0, "steps that it has (default 5)")
	choice(f, one(&c.AMP, train.ParseAMP, train.AMPs), "amp", string(train.AMPBF16), "what matrix products are computed in: "+strings.Join(train.AMPs, ", ")+"; fp16 with a loss scaler; bf16 if no value is given")
	f.IntVar(&c.Statistics, "statistics", 0, "steps between looks at the outputs, weights and gradients of each module, for the log, the live view and units that are dead; 0 for none")
	f.BoolVar(&c.Anomaly, "anomaly", false, "look at every number, slowly, and stop at the operation that makes the first NaN or infinity")
	leverFlags(f, c)
	f.BoolVar(&c.Capture, "capture", false, "record a step once and do it again as one launch, to the bit as without")
	f.IntVar(&c.Context, "context", 0, "gpt: tokens that a position sees, lstm: that gradients go back over ("+byTask(sized(func(c *train.Config) int { return c.Context }))+"); of --init, as many as it has positions, or fewer")
	f.IntVar(&c.Layers, "layers", 0, "of models of texts ("+byTask(sized(func(c *train.Config) int { return c.Layers }))+")")
	f.IntVar(&c.Heads, "heads", 0, "gpt: of attention (default 4)")
	f.IntVar(&c.Width, "width", 0, "of models of texts: of the layers ("+byTask(sized(func(c *train.Config) int { return c.Width }))+")")
	f.IntVar(&c.Vocab, "vocab", 0, "of models of texts: number of tokens that there are (default the text's)")
	f.Float64Var(&c.Dropout, "dropout", 0, "of models of texts")
}

// option is the flag of one of a Config's Options.
type option struct {
	c    *train.Config
	name string
}

func (o *option) Type() string { return "float64" }

func (o *option) String() string {
	if o.c == nil || o.c.Options == nil {
		return "0"
	}
	return strconv.FormatFloat(o.c.Options[o.name], 'g', -1, 64)
}

func (o *option) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	if o.c.Options == nil {
		o.c.Options = map[string]float64{}
	}
	o.c.Options[o.name] = v
	return nil
}

// dataFlags are those of the commands that read a data set.
func dataFlags(f *pflag.FlagSet, data, tokens *string) {
	f.StringVar(data, "data", "", dataset.Help())
	f.StringVar(tokens, "tokens", "", "in place of a text, a file of little-endian uint16 tokens")
}

// tableFlags are those of training on a table.
func tableFlags(f *pflag.FlagSet, c *train.Config) {
	f.StringVar(&c.Target, "target", "", "tabular: the column to foretell")
	f.StringVar(&c.Objective, "objective", "", "tabular: regression or classification (default: of numbers the first, of texts the other)")
	f.StringVar(&c.Drop, "drop", "", "tabular: columns that are no inputs, such as an identifier, with commas between them")
}

// deviceFlags are those of the commands that compute; planned ones give figures of memory without computing.
func deviceFlags(f *pflag.FlagSet, device *string, threads *int, planned bool) {
	null := ""
	if planned {
		null = ", null:CARD for memory figures only"
	}
	f.StringVar(device, "device", "", "where to compute: cpu, cuda:N, sim:N for a simulated GPU"+null+" (default the best there is)")
	f.IntVar(threads, "threads", 0, "threads of the CPU; results do not depend on it (default all)")
}

func runTrain(cmd *cobra.Command, args []string, given *train.Config, listen string) error {
	c, err := merge(cmd.Flags(), args, given)
	if err != nil {
		return err
	}
	outliveReader() // the steps so far are kept
	s := newScreen(cmd)
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	s.out.stop = stop
	watch, end, err := viewed(s, listen)
	if err != nil {
		return err
	}
	result, err := trainSomewhere(ctx, c, watch)
	end(err)
	if err != nil && !errors.Is(err, train.ErrInterrupted) {
		s.clear()
		s.ranOut(err)
		return err
	}
	if s.emit(result) == nil {
		s.trained(result, err != nil)
	}
	hint := "the run is whole; score it with: warpline eval "
	if err != nil {
		hint = "go on with: warpline train --resume --out "
	}
	if failed := s.out.failure(hint + quoted(result.Out)); failed != nil {
		return failed
	}
	if p := result.Profile; err == nil && p != nil && p.Err != nil {
		return advice.Failf("make room for it or give another --profile=DIR, and profile again with --resume and more --steps", "the run is whole, its profile is not written: %v", p.Err)
	}
	return err
}

// viewed is whom a run tells: the screen, and where an address is given a page too, until end.
func viewed(s *screen, listen string) (watch train.Watcher, end func(err error), err error) {
	if listen == "" {
		return s, func(error) {}, nil
	}
	server, err := web.Listen(listen)
	if err != nil {
		return nil, nil, err
	}
	v := live.New(server, s)
	presence.SetURL(server.URL)
	s.emit(map[string]string{"url": server.URL})
	s.say("live view: %s", server.URL)
	if !server.Local() {
		s.Note("every machine that reaches this one can look on, and ask for profiles")
	}
	return v, func(err error) {
		switch {
		case err == nil:
			v.End("the run is done", false)
		case errors.Is(err, train.ErrInterrupted):
			v.End("the run was interrupted", false)
		default:
			v.End("the run failed: "+err.Error(), true)
		}
		v.Close()
	}, nil
}

// trainSomewhere chooses a run folder where none is given, and another one when a run beside takes it first.
func trainSomewhere(ctx context.Context, c train.Config, s train.Watcher) (*train.Result, error) {
	if c.Out != "" || c.Resume {
		return train.Run(ctx, c, s)
	}
	for {
		out, err := freeFolder(c.Task)
		if err != nil {
			return nil, err
		}
		c.Out = out
		result, err := train.Run(ctx, c, s)
		if !errors.Is(err, fs.ErrExist) {
			return result, err
		}
	}
}

// merge puts the flags that were given over the task's defaults.
func merge(f *pflag.FlagSet, args []string, given *train.Config) (train.Config, error) {
	task := train.Tasks[0]
	if len(args) > 0 {
		task = args[0]
	}
	c, err := train.Defaults(task)
	if err != nil {
		return c, err
	}
	c.Given = map[string]bool{"task": len(args) > 0}
	defaults := pflag.NewFlagSet("", pflag.ContinueOnError)
	merged := c
	trainFlags(defaults, &merged)
	merged = c // making flags has written their own defaults
	f.Visit(func(flag *pflag.Flag) {
		if target := defaults.Lookup(flag.Name); target != nil && err == nil {
			merged.Given[flag.Name] = true
			err = target.Value.Set(flag.Value.String())
		}
	})
	if len(args) == 0 {
		delete(merged.Given, "task")
	}
	return merged, err
}

// freeFolder is the first of runs/TASK-1, runs/TASK-2 … that does not exist.
func freeFolder(task string) (string, error) {
	for n := 1; ; n++ {
		dir := filepath.Join("runs", fmt.Sprintf("%s-%d", task, n))
		_, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return dir, nil
		}
		if err != nil {
			return "", &advice.Error{Text: err.Error(), Hint: "give --out a folder that can be written", Err: err}
		}
	}
}
