package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
)

// completion prints what a shell loads to complete our commands.
func (a *app) completion(root *cobra.Command) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	c := a.verb("completion SHELL", "Print completions for bash, zsh or fish", func(_ *cobra.Command, args []string) error {
		switch args[0] {
		case "bash":
			return root.GenBashCompletionV2(a.stdout, true)
		case "zsh":
			return root.GenZshCompletion(a.stdout)
		case "fish":
			return root.GenFishCompletion(a.stdout, true)
		}
		return usage(fmt.Errorf("no completions for %q: want %s", args[0], strings.Join(shells, ", ")))
	})
	c.ValidArgsFunction = words(shells...)
	return c
}

type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// words completes to one of a few words.
func words(list ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeArgs completes the arguments that a verb's use line names: DIR is a directory, NAME
// behind it a table of the store there.
func completeArgs(arguments []string) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch strings.Trim(arguments[len(args)], "[]") {
		case "DIR":
			return nil, cobra.ShellCompDirectiveFilterDirs
		case "NAME":
			return tableNames(args), cobra.ShellCompDirectiveNoFileComp
		case "FILE", "OUT":
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlags completes the values of the flags that have the same meaning everywhere.
func completeFlags(c *cobra.Command) {
	for name, complete := range map[string]completer{
		"format":   words("table", "csv", "jsonl", "json"),
		"order":    words("key", "any"),
		"as-of":    words("latest"),
		"history":  words("forever", "7d"),
		"columns":  completeColumns,
		"where":    completeWhere,
		"from-key": words(),
		"to-key":   words(),
		"limit":    words(),
	} {
		if c.Flags().Lookup(name) != nil {
			// The error is for a flag that is not there, or has its completion already: whoever
			// gave it knows better.
			_ = c.RegisterFlagCompletionFunc(name, complete)
		}
	}
}

// completeColumns completes a list of column names.
func completeColumns(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	before, _ := cutLast(typed, ",")
	given := strings.Split(before, ",")
	var list []string
	for _, name := range columnNames(args) {
		if !slices.Contains(given, name) {
			list = append(list, before+name)
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeWhere completes the column of the last test.
func completeWhere(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	before, _ := cutLast(typed, " ")
	if before != "" && !strings.HasSuffix(strings.ToLower(before), " and ") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	for _, name := range columnNames(args) {
		list = append(list, before+name)
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// cutLast parts text behind the last separator.
func cutLast(text, separator string) (before, after string) {
	i := strings.LastIndex(text, separator) + 1
	return text[:i], text[i:]
}

func tableNames(args []string) (list []string) {
	glance(args, func(store *oribi.Store) {
		for _, t := range store.Tables() {
			list = append(list, t.Name())
		}
	})
	return list
}

func columnNames(args []string) (list []string) {
	glance(args, func(store *oribi.Store) {
		if len(args) < 2 {
			return
		}
		if t, err := store.Table(args[1]); err == nil {
			for _, c := range t.Schema().Columns {
				list = append(list, c.Name)
			}
		}
	})
	return list
}

// longestGlance is how long somebody who pressed a key is made to wait.
const longestGlance = time.Second

// glance looks into the store that the first argument names, if it can be opened at once: a store
// that is locked, damaged, has a long log to read, or is none is not looked at, and nobody is told.
func glance(args []string, look func(*oribi.Store)) {
	if len(args) == 0 {
		return
	}
	opened := make(chan *oribi.Store, 1)
	go func() {
		store, err := oribi.Open(args[0], &oribi.Options{ReadOnly: true, MemoryLimit: memoryLimit})
		if err == nil {
			opened <- store
		}
		close(opened)
	}()
	select {
	case store := <-opened:
		if store != nil {
			look(store)
			store.Close() // what was read is all that is wanted
		}
	case <-time.After(longestGlance):
		// The process ends in a moment, and the opening with it.
	}
}
