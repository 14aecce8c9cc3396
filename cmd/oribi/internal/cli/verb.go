package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// words completes to one of a fixed list of words.
func words(list ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeArgs completes the arguments in a verb's use line: DIR is a directory, NAME after it a
// table of the store in that directory.
func completeArgs(arguments []string) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch strings.Trim(arguments[len(args)], "[]") {
		case "DIR", "FS":
			return nil, cobra.ShellCompDirectiveFilterDirs
		case "NAME":
			return tableNames(args), cobra.ShellCompDirectiveNoFileComp
		case "FILE", "KEYS", "LAYOUT", "OUT", "PATH", "SPEC":
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// pathWords are the arguments that are names of files and directories.
var pathWords = []string{"DIR", "FILE", "PATH", "OUT", "SPEC", "LAYOUT", "FS", "REPO"}

// verb makes a command that takes exactly the arguments in capitals in use; those in brackets are
// optional.
func (a *app) verb(use, short string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	words := strings.Fields(use)[1:]
	least := len(words)
	for least > 0 && strings.HasPrefix(words[least-1], "[") {
		least--
	}
	return &cobra.Command{Use: use, Short: short, ValidArgsFunction: completeArgs(words),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < least {
				return withHelp(fmt.Errorf("%s is missing", words[len(args)]), "usage: "+usageLine(cmd))
			}
			if len(args) > len(words) {
				return withHelp(fmt.Errorf("%q is one argument too many", args[len(words)]), "usage: "+usageLine(cmd))
			}
			for i, arg := range args {
				if word := strings.Trim(words[i], "[]"); arg == "" && slices.Contains(pathWords, word) {
					return withHelp(fmt.Errorf("%s is empty", word), "usage: "+usageLine(cmd))
				}
			}
			if err := checkWait(cmd); err != nil {
				return err
			}
			return missingFlag(cmd)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a.started = true
			return run(cmd, args)
		}}
}

// seeHelp adds the command that prints the help.
func seeHelp(cmd *cobra.Command, err error) error {
	return withHelp(err, "see: "+helpLine(cmd))
}

func helpLine(cmd *cobra.Command) string {
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
	return seeHelp(cmd, fmt.Errorf("--%s is missing", missing))
}

// usageLine returns the usage of a command: its name and arguments.
func usageLine(c *cobra.Command) string {
	return c.Parent().CommandPath() + " " + c.Use
}
