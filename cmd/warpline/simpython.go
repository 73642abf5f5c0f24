package main

import (
	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/simrun"
)

func newSimPython() *cobra.Command {
	return &cobra.Command{
		Use: "python", Short: "Write simgpu.py, by which Python programs and tests run kernels under checks",
		Long: `Write the Python module simgpu to the standard output: one file that needs the standard library and NumPy. By it programs and
tests launch PTX kernels, Triton's too, on NumPy arrays under the checks of warpline sim run; docs/simulator.md shows how.`,
		Example: "  warpline sim python >simgpu.py",
		Args:    from(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := newScreen(cmd)
			module, err := simrun.Python()
			if err == nil {
				_, err = s.out.Write(module)
			}
			return s.unwritten(err)
		},
	}
}

// newSimServe is the other end of simgpu.py.
func newSimServe() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Answer the requests of simgpu.py", Hidden: true, Args: from(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return simrun.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
