package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/machine"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:               "warpline",
		Short:             "Train neural networks with nothing but one binary",
		Example:           "  warpline train\n  warpline eval runs/digits-1",
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              noCommand,
		PersistentPreRunE: func(*cobra.Command, []string) error { return machine.CheckLevel() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, _ := cmd.Flags().GetBool("version"); asked {
				return tellVersion(cmd)
			}
			return cmd.Help()
		},
	}
	root.SetHelpFunc(showHelp)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Flags().Bool("version", false, "print what this program was built from")
	root.PersistentFlags().Bool("json", false, "JSON lines on the standard output, text for people on the standard error")
	root.AddCommand(newTrain(), newEval(), newPredict(), newSample(), newProfile(), newBench(), newCompare(), newSim(), newCheck(), newTop(), newDiagnose(), newTorch(), newVersion())
	root.AddCommand(newPlan(), newReport(), newVet(), newLab())
	root.AddCommand(newDoctor(), newDoctorProbe(), newLearn())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print what this program was built from",
		Example: "  warpline version",
		Args:    from(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return tellVersion(cmd) },
	}
}

func tellVersion(cmd *cobra.Command) error {
	s, v := newScreen(cmd), version()
	if err := s.emit(map[string]string{"version": v, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.text, "warpline %s, %s, %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return s.unwritten(err)
}

// unknownVersion is of a program that was built where its revision was not to be seen.
const unknownVersion = "(devel), built without its revision"

// version is the module's, or the commit's where there is none.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (info.Main.Version == "" || info.Main.Version == "(devel)") {
			return s.Value
		}
	}
	if info.Main.Version == "" || info.Main.Version == "(devel)" {
		return unknownVersion
	}
	return info.Main.Version
}
