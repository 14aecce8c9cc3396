package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/nearest"
)

// flagError rewrites cobra's message about a wrong flag.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, e)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return verb.SeeHelp(cmd, fmt.Errorf("--%s: the value is missing", e.GetFlag().Name))
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return verb.SeeHelp(cmd, fmt.Errorf("--%s: want %s, not %q", e.GetFlag().Name, wanted(e.GetFlag()), e.GetValue()))
	}
	if e, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return verb.SeeHelp(cmd, fmt.Errorf("%q is not a flag", e.GetSpecifiedFlag()))
	}
	return verb.SeeHelp(cmd, err)
}

func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	if short := e.GetSpecifiedShortnames(); short != "" {
		err := fmt.Errorf("unknown flag -%s", short)
		if short[0] >= '0' && short[0] <= '9' {
			return exit.WithHelp(err, "a value that begins with - goes after --")
		}
		return verb.SeeHelp(cmd, err)
	}
	name := e.GetSpecifiedName()
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	err := fmt.Errorf("unknown flag --%s", name)
	if near := nearest.Of(name, names); near != "" {
		return exit.WithHelp(err, fmt.Sprintf("did you mean --%s? see: %s", near, verb.HelpLine(cmd)))
	}
	return verb.SeeHelp(cmd, err)
}

// wanted describes the value that a flag takes.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int32", "int64":
		return "a whole number"
	case "uint", "uint32", "uint64":
		return "a whole number, not negative"
	case "float64":
		return "a number"
	case "stringSlice":
		return "names separated by commas"
	}
	return "a " + f.Value.Type()
}

// helpCommand is "oribi help".
func helpCommand(a *console.Console, root *cobra.Command) *cobra.Command {
	return &cobra.Command{Use: "help [NOUN] [VERB]", Short: "Describe all commands, or one", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return helpNames(root, args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if t, ok := findTopic(args[0]); ok {
					a.Started = true
					return printTopic(a, t)
				}
			}
			c, err := find(root, args)
			if err != nil {
				return err
			}
			a.Started = true
			return printHelp(a, c)
		}}
}

// printHelp prints the help of one command, or of all commands below it.
func printHelp(a *console.Console, c *cobra.Command) error {
	var b strings.Builder
	if c.HasSubCommands() {
		describeAll(a, &b, c)
	} else {
		describeOne(a, &b, c)
	}
	_, err := a.Stdout.Write([]byte(b.String()))
	return err
}

func describeAll(a *console.Console, b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "%s\n\n", c.Short)
	width := 0
	for _, leaf := range leaves(c) {
		width = max(width, len(verb.UsageLine(leaf)))
	}
	noun := ""
	for _, leaf := range leaves(c) {
		if p := leaf.Parent().Name(); p != noun && noun != "" && !c.HasParent() {
			b.WriteString("\n")
		}
		noun = leaf.Parent().Name()
		fmt.Fprintf(b, "  %-*s  %s\n", width, verb.UsageLine(leaf), hang(leaf.Short, width+4, helpWidth(a)))
	}
	if c.HasParent() {
		fmt.Fprintf(b, "\n%s VERB describes one verb.\n", verb.HelpLine(c))
		return
	}
	appendTopics(b)
	b.WriteString("\noribi help NOUN VERB describes one command and shows an example.\n" +
		"Flags go before or after arguments; nothing after -- is a flag. --quiet hides progress.\n")
}

// helpWidth is the maximum width of lines of help.
func helpWidth(a *console.Console) int {
	if console.IsTerminal(a.File) {
		return console.TerminalWidth(a.File)
	}
	return 80
}

// hang wraps text into lines that end before column width; each but the first begins with indent
// blanks.
func hang(text string, indent, width int) string {
	var b strings.Builder
	at := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

func describeOne(a *console.Console, b *strings.Builder, c *cobra.Command) {
	about := c.Short
	if c.Long != "" {
		about = c.Long
	}
	for paragraph := range strings.SplitSeq(about, "\n\n") {
		fmt.Fprintf(b, "%s\n\n", hang(paragraph, 0, helpWidth(a)))
	}
	fmt.Fprintf(b, "  %s%s\n", verb.UsageLine(c), flagsWord(c))
	c.InitDefaultHelpFlag()
	c.Flags().Lookup("help").Hidden = true
	if flags := c.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\nFlags:\n%s", flags.FlagUsagesWrapped(helpWidth(a)))
	}
	if example := examples[c.CommandPath()]; example != "" {
		b.WriteString("\nExample:\n")
		for line := range strings.Lines(example) {
			fmt.Fprintf(b, "  %s", line)
		}
		b.WriteString("\n")
	}
}

func flagsWord(c *cobra.Command) string {
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		return " [FLAGS]"
	}
	return ""
}
