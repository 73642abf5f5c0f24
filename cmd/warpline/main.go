// Command warpline trains models, scores them and lets them write.
//
//	warpline train                  a convnet on drawn digits: the main job
//	warpline eval runs/digits-1     score a run
//	warpline sample runs/gpt-1      let a language model write
//	warpline check --device cuda:0  see whether a device computes right
//	warpline top                    watch devices and what runs on them
//	warpline diagnose logs/         say what is wrong from logs, error texts, traces
//	warpline bench gemm             see how much of a core products of matrices get
//
// People's text and pictures go to the standard output; with --json that has JSON lines and the text goes to the
// standard error. The exit status is 0 when the work is done, 1 when something was found to be wrong (with a kernel by sim,
// a device by check, files by diagnose), 2 when the work could not be done (one line says why, one what to do), 130 when it
// was interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/internal/vetgo"
	"github.com/warpline-ml/warpline/train"
)

// Exit statuses.
const (
	exitDone        = 0
	exitFound       = 1
	exitFailed      = 2
	exitInterrupted = 130
)

// exitStatus ends the command with the status of a program that it ran, which has said why.
type exitStatus int

// Error names the status.
func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func main() {
	if vetgo.IsAsked(os.Args[1:]) {
		vetgo.Serve() // go vet -vettool
	}
	ctx, stop := interruptible(os.Args[1:])
	defer stop()
	status := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	presence.Close()
	os.Exit(status)
}

// interruptible is a context that the first Ctrl-C, SIGTERM or closed terminal cancels; the second ends the program, which
// args started. Of a terminal that closes the shell and the kernel both tell: that is no second wish.
func interruptible(args []string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	if len(args) > 1 && args[0] == "sim" && args[1] == "exec" {
		return ctx, cancel // signals are for the program that it runs
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		cancel()
		stopping(os.Stderr, args)
		for s := range signals {
			if s != syscall.SIGHUP {
				os.Exit(exitInterrupted)
			}
		}
	}()
	return ctx, cancel
}

// stopping answers the first Ctrl-C at once: a step may take long.
func stopping(stderr *os.File, args []string) {
	if _, ok := terminalWidth(stderr); ok {
		fmt.Fprintln(stderr) // below the live line
	}
	fmt.Fprintf(stderr, "stopping%s; again to stop now\n", piece(args))
}

// piece is what a command line finishes before it stops, in words.
func piece(args []string) string {
	i := slices.IndexFunc(args, func(s string) bool { return !strings.HasPrefix(s, "-") })
	switch {
	case i >= 0 && args[i] == "check":
		return " after this part"
	case i >= 0 && args[i] == "bench":
		return " after this turn"
	case i >= 0 && (args[i] == "sim" || args[i] == "top" || args[i] == "lab" || args[i] == "diagnose" || args[i] == "learn" || args[i] == "vet"):
		return ""
	}
	return " after this step"
}

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return guarded(stderr, func() int {
		root := newRoot()
		root.SetArgs(choices(root, args))
		root.SetOut(stdout)
		root.SetErr(stderr)
		cmd, err := root.ExecuteContextC(ctx)
		return conclude(cmd, err, stderr)
	})
}

// conclude says why a command failed, if it did.
func conclude(cmd *cobra.Command, err error, stderr io.Writer) int {
	var known *advice.Error
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var status exitStatus
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, train.ErrInterrupted):
		return exitInterrupted
	case errors.As(err, &known):
		report(stderr, known.Text, known.Hint)
	case errors.Is(err, errFindings):
		return exitFound
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &value):
		report(stderr, fmt.Sprintf("--%s is %q, which is no %s", value.GetFlag().Name, value.GetValue(), kind(value.GetFlag())), helpOf(cmd))
	case errors.As(err, &unknown) && cmd.HasAvailableSubCommands() && len(cmd.Flags().Args()) > 0:
		return conclude(cmd, noCommand(cmd, cmd.Flags().Args()), stderr) // whose flags these are
	case errors.As(err, &unknown):
		cause, hint := noFlag(cmd, unknown)
		report(stderr, cause, hint)
	default:
		report(stderr, err.Error(), helpOf(cmd))
	}
	return exitFailed
}

// kind is what a flag takes, in words.
func kind(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return "whole number in range"
	case "uint64":
		return "whole number from 0 up in range"
	case "float64":
		return "number"
	case "bool":
		return "true or false"
	case "intSlice":
		return "list of whole numbers with commas between"
	case "int|auto":
		return "whole number in range, and not auto"
	case "percent":
		return "share such as 5%"
	case "bytes":
		return "size such as 8GiB"
	case "duration":
		return "time such as 500ms or 2m"
	}
	return f.Value.Type()
}

// guarded turns a panic of f, which is a mistake of this program, into two lines.
func guarded(stderr io.Writer, f func() int) (status int) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		report(stderr, fmt.Sprintf("a mistake in warpline itself: %v", v), "run it again with WARPLINE_DEBUG=1 and report what it prints")
		if os.Getenv("WARPLINE_DEBUG") != "" {
			stderr.Write(debug.Stack())
		}
		status = exitFailed
	}()
	return f()
}

// report writes one line of cause and one of what to do.
func report(w io.Writer, cause, hint string) {
	line := strings.NewReplacer("\r", "", "\n", " ", "\t", " ")
	fmt.Fprintf(w, "error: %s\nhint: %s\n", line.Replace(strings.TrimSpace(cause)), line.Replace(strings.TrimSpace(hint)))
}
