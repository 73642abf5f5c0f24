package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/device"
)

// from takes at least least and at most most arguments; most below 0 is any number.
func from(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			words := strings.Fields(cmd.Use)
			example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
			return advice.Failf("as in: "+example, "%s is missing", words[1+len(args)])
		case most >= 0 && len(args) > most:
			return tooMany(cmd, args[most])
		}
		return nil
	}
}

// tooMany refuses an argument, which may be a device or lack the -- of a flag.
func tooMany(cmd *cobra.Command, word string) error {
	hint := ""
	if f := cmd.Flags().Lookup("device"); f != nil && !f.Changed && isDevice(word) {
		hint = "did you mean --device " + word + "? "
	} else if cmd.Flags().Lookup(word) != nil {
		hint = "did you mean --" + word + "? "
	}
	return advice.Failf(hint+helpOf(cmd), "%q is one argument too many", word)
}

func isDevice(word string) bool {
	_, err := device.ParseName(word)
	return err == nil
}

// noCommand refuses what is none of the commands below cmd.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return advice.Failf(advice.Meant(args[0], names)+helpOf(cmd), "there is no command %q", cmd.CommandPath()+" "+args[0])
}

// noFlag says which flag may have been meant; Go's own flags begin with one dash.
func noFlag(cmd *cobra.Command, e *pflag.NotExistError) (cause, hint string) {
	written := "--" + e.GetSpecifiedName()
	if short := e.GetSpecifiedShortnames(); short != "" {
		written = "-" + short
	}
	bare := strings.TrimLeft(written, "-")
	bare, _, _ = strings.Cut(bare, "=")
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return "there is no flag " + written, strings.Replace(advice.Meant(bare, names), "mean ", "mean --", 1) + helpOf(cmd)
}

// choice adds a flag that takes one of the words of v's Type, in the next argument too; where it stands alone it has a
// value of its own.
func choice(f *pflag.FlagSet, v pflag.Value, name, alone, help string) {
	f.Var(v, name, help)
	f.Lookup(name).NoOptDefVal = alone
}

// choices are args with the values of such flags put to their names, as pflag wants what may be left out. A word that the
// command takes by itself is no value.
func choices(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil {
		return args
	}
	out := slices.Clone(args)
	for i := 0; i+1 < len(out) && out[i] != "--"; i++ {
		name, long := strings.CutPrefix(out[i], "--")
		f := cmd.Flags().Lookup(name)
		if !long || f == nil || f.NoOptDefVal == "" || !strings.Contains(f.Value.Type(), "|") {
			continue
		}
		word := out[i+1]
		if slices.Contains(strings.Split(f.Value.Type(), "|"), word) || len(cmd.ValidArgs) > 0 && !strings.HasPrefix(word, "-") && !slices.Contains(cmd.ValidArgs, word) {
			out[i] += "=" + word
			out = slices.Delete(out, i+1, i+2)
		}
	}
	return out
}

func helpOf(cmd *cobra.Command) string { return cmd.CommandPath() + " --help shows what it takes" }
