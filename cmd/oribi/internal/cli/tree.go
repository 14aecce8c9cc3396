package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/nearest"
)

// unknown returns the error for a noun or verb that parent does not have; it names the nearest one.
func unknown(parent *cobra.Command, word string) error {
	path := strings.TrimPrefix(parent.CommandPath()+" "+word, "oribi ")
	err := fmt.Errorf("unknown command %q", path)
	if near := nearestCommand(parent, word); near != "" {
		return exit.WithHelp(err, "did you mean: "+near)
	}
	return verb.SeeHelp(parent, err)
}

// nearestCommand returns the command that word, which follows parent, most likely means: one of
// parent's, or a verb whose noun was left out.
func nearestCommand(parent *cobra.Command, word string) string {
	var names []string
	for _, c := range parent.Commands() {
		names = append(names, c.Name())
		if c.HasSubCommands() {
			for _, leaf := range c.Commands() {
				if leaf.Name() == word {
					return leaf.CommandPath()
				}
			}
		}
	}
	if near := nearest.Of(word, names); near != "" {
		return parent.CommandPath() + " " + near
	}
	return ""
}

// find returns the command that a sequence of nouns and verbs names.
func find(c *cobra.Command, names []string) (*cobra.Command, error) {
next:
	for _, name := range names {
		for _, sub := range c.Commands() {
			if sub.Name() == name {
				c = sub
				continue next
			}
		}
		return nil, unknown(c, name)
	}
	return c, nil
}

// visible returns the commands below c that help lists.
func visible(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			list = append(list, sub)
		}
	}
	return list
}

// leaves returns the verbs below c, in the order in which help lists them.
func leaves(c *cobra.Command) []*cobra.Command {
	if !c.HasSubCommands() {
		return []*cobra.Command{c}
	}
	var list []*cobra.Command
	for _, sub := range visible(c) {
		list = append(list, leaves(sub)...)
	}
	return list
}
