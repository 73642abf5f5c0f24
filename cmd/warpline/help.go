package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/render"
)

// widestHelp is where lines of help end on terminals that are wider.
const widestHelp = 120

// showHelp writes what a command is for and how it is called, for the width of the terminal.
func showHelp(cmd *cobra.Command, _ []string) {
	width := min(newScreen(cmd).width, widestHelp)
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n%s", folded(joined(cmp.Or(cmd.Long, cmd.Short)), width), folded(cmd.UsageString(), width))
}

// joined is a text with the lines of each paragraph in one; indented lines stay.
func joined(text string) string {
	var b strings.Builder
	before := ""
	for _, line := range strings.Split(text, "\n") {
		switch {
		case b.Len() == 0:
		case before != "" && line != "" && before[0] != ' ' && line[0] != ' ':
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
		b.WriteString(line)
		before = line
	}
	return b.String()
}

// folded breaks lines that are too long. What has columns goes on in the last of them. Examples stay as a shell takes
// them.
func folded(text string, width int) string {
	lines, example := strings.Split(text, "\n"), false
	for i, line := range lines {
		example = line != "" && (example || line == "Examples:")
		if !example {
			lines[i] = render.Wrap(line, width, lastColumn(line, width))
		}
	}
	return strings.Join(lines, "\n")
}

// lastColumn is where the last column of a line begins, 0 without columns.
func lastColumn(line string, width int) int {
	i := strings.LastIndex(line, "  ")
	if i < 0 {
		return 0
	}
	return min(i+2, width/2)
}
