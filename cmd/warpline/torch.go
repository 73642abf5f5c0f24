package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/torchcall"
)

func newTorch() *cobra.Command {
	return &cobra.Command{
		Use: "torch [CALL]", Short: "Say how a call of PyTorch is written here",
		Long: `Say how a call of PyTorch is written here: our spelling with an example that is compiled, what is different, or else the
nearest way, or why there is none.

CALL is a name or a call as programs have it, with or without its package and its arguments, in any case. It is looked up in
what PyTorch 2.15 has in torch, torch.Tensor, torch.nn with functional, init and utils, torch.optim with lr_scheduler,
torch.utils.data, torch.cuda and torch.amp. Without CALL the packages are listed, with how much of each is here. An unknown
CALL gives the nearest names, and exit status 2. docs/pytorch.md is the same table on a page.`,
		Example: "  warpline torch nn.Linear\n  warpline torch crossentropy\n  warpline torch 'torch.optim.AdamW(weight_decay=0.1)'\n  warpline torch \"tensor.to('cuda')\"\n  warpline torch 'x @ w'\n  warpline torch --json x.view | jq -r '.entries[].ways[].example'",
		Args:    from(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return tellGroups(newScreen(cmd))
			}
			return tellCall(newScreen(cmd), args[0])
		},
	}
}

// tellGroups lists PyTorch's packages.
func tellGroups(s *screen) error {
	groups := torchcall.Groups()
	if err := s.emit(map[string]any{"pytorch": torchcall.Version(), "groups": groups}); err != nil {
		return err
	}
	t := render.Table{
		Header: []string{"PyTorch " + torchcall.Version(), "names", "here", "nearest way", "not here"}, Right: []bool{false, true, true, true, true},
	}
	for _, g := range groups {
		t.Rows = append(t.Rows, []string{g.Name, strconv.Itoa(g.Names), strconv.Itoa(g.Here), strconv.Itoa(g.Nearest), strconv.Itoa(g.Not)})
	}
	fmt.Fprint(s.text, t.String(s.tableWidth()))
	s.say("\nwarpline torch CALL tells of one; docs/pytorch.md is a page of all.")
	return s.failure()
}

// tellCall answers a call.
func tellCall(s *screen, call string) error {
	a := torchcall.Find(call)
	if err := s.emit(a); err != nil {
		return err
	}
	if len(a.Entries) == 0 {
		hint := "warpline torch lists the packages that it knows"
		switch {
		case slices.ContainsFunc(torchcall.Groups(), func(g torchcall.Group) bool { return strings.EqualFold(g.Name, call) }):
			hint = "it is a package: name one of its calls; docs/pytorch.md lists them, warpline torch counts them"
		case len(a.Near) > 0:
			hint = "near to it: " + strings.Join(a.Near, ", ")
		}
		return advice.Failf(hint, "no call of PyTorch %s is known as %q", torchcall.Version(), call)
	}
	for line := range strings.Lines(a.Text()) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, " ") {
			fmt.Fprintln(s.text, line)
		} else {
			s.say("%s", line)
		}
	}
	return s.failure()
}
