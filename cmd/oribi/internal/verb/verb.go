// Package verb makes the commands of cobra: verbs with their arguments, their completion, and the
// errors that refer to help.
package verb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
)

type Completer = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// Words completes to one of a fixed list of words.
func Words(list ...string) Completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeArgs completes the arguments in a verb's use line: DIR is a directory, NAME after it a
// table of the store in that directory.
func completeArgs(arguments []string) Completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch strings.Trim(arguments[len(args)], "[]") {
		case "DIR", "FS":
			return nil, cobra.ShellCompDirectiveFilterDirs
		case "NAME":
			return access.TableNames(args), cobra.ShellCompDirectiveNoFileComp
		case "FILE", "KEYS", "LAYOUT", "OUT", "PATH", "SPEC":
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// pathWords are the arguments that are names of files and directories.
var pathWords = []string{"DIR", "FILE", "PATH", "OUT", "SPEC", "LAYOUT", "FS", "REPO"}

// New makes a command that takes exactly the arguments in capitals in use; those in brackets are
// optional.
func New(a *console.Console, use, short string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	words := strings.Fields(use)[1:]
	least := len(words)
	for least > 0 && strings.HasPrefix(words[least-1], "[") {
		least--
	}
	return &cobra.Command{Use: use, Short: short, ValidArgsFunction: completeArgs(words),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < least {
				return exit.WithHelp(fmt.Errorf("%s is missing", words[len(args)]), "usage: "+UsageLine(cmd))
			}
			if len(args) > len(words) {
				return exit.WithHelp(fmt.Errorf("%q is one argument too many", args[len(words)]), "usage: "+UsageLine(cmd))
			}
			for i, arg := range args {
				if word := strings.Trim(words[i], "[]"); arg == "" && slices.Contains(pathWords, word) {
					return exit.WithHelp(fmt.Errorf("%s is empty", word), "usage: "+UsageLine(cmd))
				}
			}
			if err := access.CheckWait(cmd); err != nil {
				return err
			}
			return missingFlag(cmd)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Started = true
			return run(cmd, args)
		}}
}

// Printing makes a verb with the flag --format, whose output has the form that run receives.
func Printing(
	a *console.Console, use, short string, run func(cmd *cobra.Command, args []string, form output.Format) error,
) *cobra.Command {
	var format string
	c := New(a, use, short, func(cmd *cobra.Command, args []string) error {
		form, err := a.Format(format)
		if err != nil {
			return err
		}
		return run(cmd, args, form)
	})
	FormatFlag(c, &format)
	return c
}

// FormatFlag adds the flag that chooses the form of output.
func FormatFlag(c *cobra.Command, format *string) {
	c.Flags().StringVar(format, "format", "", "table, csv, jsonl or json (default: table on a terminal, else jsonl)")
}

// Require makes flags required, which the command must have.
func Require(c *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := c.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
}

// SeeHelp adds the command that prints the help.
func SeeHelp(cmd *cobra.Command, err error) error {
	return exit.WithHelp(err, "see: "+HelpLine(cmd))
}

func HelpLine(cmd *cobra.Command) string {
	return strings.Replace(cmd.CommandPath(), "oribi", "oribi help", 1)
}

// missingFlag reports the first required flag that is missing.
func missingFlag(cmd *cobra.Command) error {
	var missing string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if required := f.Annotations[cobra.BashCompOneRequiredFlag]; len(required) > 0 && !f.Changed && missing == "" {
			missing = f.Name
		}
	})
	if missing == "" {
		return nil
	}
	return SeeHelp(cmd, fmt.Errorf("--%s is missing", missing))
}

// UsageLine returns the usage of a command: its name and arguments.
func UsageLine(c *cobra.Command) string {
	return c.Parent().CommandPath() + " " + c.Use
}
