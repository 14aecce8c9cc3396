package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carboncmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exportcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/kuducmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/kvcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/loadcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/tablecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/kv"
)

// completion prints the script that a shell loads to complete commands.
func completion(a *console.Console, root *cobra.Command) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	c := verb.New(a, "completion SHELL", "Print completions for bash, zsh or fish",
		func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				if _, err := io.WriteString(a.Stdout, bashFallbacks); err != nil {
					return err
				}
				return root.GenBashCompletionV2(a.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.Stdout)
			case "fish":
				return root.GenFishCompletion(a.Stdout, true)
			}
			return exit.Usage(fmt.Errorf("no completions for %q: want bash, zsh, or fish", args[0]))
		})
	c.ValidArgsFunction = verb.Words(shells...)
	return c
}

// bashFallbacks defines the functions of the bash-completion package that the script calls, in case
// it is not installed.
const bashFallbacks = `if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    # Bash splits words at = and :, which this joins again.
    _get_comp_words_by_ref() {
        local i word join=
        words=() cword=0
        for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
            word=${COMP_WORDS[i]}
            if ((i > 0)) && [[ -n $join || $word == [=:]* ]]; then
                words[${#words[@]}-1]+=$word
            else
                words+=("$word")
            fi
            join=
            [[ $word == *[=:] ]] && join=1
            ((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
        done
        cur=${words[cword]} prev=
        ((cword > 0)) && prev=${words[cword-1]}
        return 0
    }
fi
if ! declare -F _filedir >/dev/null 2>&1; then
    _filedir() {
        local IFS=$'\n' kind=-f
        [[ ${1-} == -d ]] && kind=-d
        COMPREPLY+=($(compgen $kind -- "$cur"))
        compopt -o filenames 2>/dev/null
        return 0
    }
fi
`

// flagCompleters complete the flags that mean the same in every command.
func flagCompleters() map[string]verb.Completer {
	return map[string]verb.Completer{
		"format":   verb.Words("table", "csv", "jsonl", "json"),
		"order":    completeOrder,
		"as-of":    verb.Words("latest", "now", "-1h", "-7d"),
		"from":     verb.Words("latest", "now", "-1h", "-7d"),
		"to":       verb.Words("latest", "now", "-1h", "-7d"),
		"history":  verb.Words("forever", "7d"),
		"wait":     verb.Words("10s", "5m", "forever"),
		"set":      completeSet,
		"columns":  completeColumns,
		"by":       completeColumn,
		"count-of": completeColumn,
		"sum":      completeColumn,
		"avg":      completeColumn,
		"min":      completeColumn,
		"max":      completeColumn,
		"drop":     completeColumn,
		"where":    completeWhere,
		"from-key": verb.Words(),
		"to-key":   verb.Words(),
		"distinct": completeColumn,
		"top":      verb.Words(),
		"limit":    verb.Words(),
		"batch":    verb.Words(),
		"key":      verb.Words(),
		"mode":     verb.Words(nearest.Keys(loadcmd.Modes)...),
		"kind":     verb.Words(nearest.Keys(tablecmd.Compactions)...),

		"input-format": verb.Words(loadcmd.InputFormats()...),

		"compressor":       verb.Words(nearest.Keys(carboncmd.Compressors)...),
		"local-dictionary": verb.Words("on", "off"),
		"page-rows":        verb.Words(),
		"blocklet-size":    verb.Words(),
		"sort-columns":     verb.Words(),
		"inverted-index":   verb.Words(),
	}
}

// nounCompleters complete the flags that only the verbs of a noun have, or that mean something else
// there.
func nounCompleters(noun string) map[string]verb.Completer {
	switch noun {
	case "kv":
		return map[string]verb.Completer{"from": verb.Words(), "to": verb.Words(), "prefix": verb.Words(),
			"ttl":    verb.Words("90s", "1h", "7d"),
			"bucket": completeBucket, "input-format": verb.Words(nearest.Keys(kvcmd.Formats)...)}
	case "kudu":
		return map[string]verb.Completer{"columns": kuducmd.Complete(someColumns), "where": kuducmd.Complete(testedColumn)}
	case "carbondata":
		return map[string]verb.Completer{"columns": carboncmd.Complete(someColumns),
			"where": carboncmd.Complete(testedColumn), "filter-json": verb.Words()}
	case "hfile":
		completers := map[string]verb.Completer{
			"view":     verb.Words("hbase", "hudi"),
			"from":     verb.Words(),
			"to":       verb.Words(),
			"like":     verb.Words(nearest.Keys(hfilecmd.Systems)...),
			"codec":    verb.Words(nearest.Keys(hfilecmd.Codecs)...),
			"encoding": verb.Words(nearest.Keys(hfilecmd.Encodings)...),
			"bloom":    verb.Words(nearest.Keys(hfilecmd.Blooms)...),
		}
		for _, s := range hfilecmd.Sizes(&hfile.WriterOptions{}) {
			completers[s.Flag] = verb.Words()
		}
		return completers
	}
	return nil
}

// completeColumns completes a list of column names.
func completeColumns(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return someColumns(access.ColumnNames(args), typed)
}

// someColumns completes a list of some of names.
func someColumns(names []string, typed string) ([]string, cobra.ShellCompDirective) {
	before, _ := cutLast(typed, ",")
	given := strings.Split(before, ",")
	var list []string
	for _, name := range names {
		if !slices.Contains(given, name) {
			list = append(list, before+name)
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeColumn completes one column name.
func completeColumn(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return access.ColumnNames(args), cobra.ShellCompDirectiveNoFileComp
}

// completeOrder completes the order of a scan: a word, or in table scan a column.
func completeOrder(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	list := []string{"key", "any"}
	if cmd.Flags().Lookup("desc") != nil {
		list = append(list, access.ColumnNames(args)...)
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// completeSet completes the column before the equals sign.
func completeSet(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var list []string
	if !strings.Contains(typed, "=") {
		for _, name := range access.ColumnNames(args) {
			list = append(list, name+"=")
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeWhere completes the column of the last test.
func completeWhere(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return testedColumn(access.ColumnNames(args), typed)
}

// testedColumn completes the column of the last test to one of names.
func testedColumn(names []string, typed string) ([]string, cobra.ShellCompDirective) {
	before, _ := cutLast(typed, " ")
	if before != "" && !startsTest(strings.ToLower(before)) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	for _, name := range names {
		list = append(list, before+name)
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// startsTest reports whether a column may follow text.
func startsTest(text string) bool {
	for _, word := range []string{" and ", " or ", "not ", "( "} {
		if strings.HasSuffix(text, word) {
			return true
		}
	}
	return false
}

// cutLast splits text after the last separator.
func cutLast(text, separator string) (before, after string) {
	i := strings.LastIndex(text, separator) + 1
	return text[:i], text[i:]
}

// completeBucket completes the name of a bucket.
func completeBucket(_ *cobra.Command, args []string, _ string) (list []string, _ cobra.ShellCompDirective) {
	access.Glance(args, func(store *oribi.Store) {
		for _, b := range kv.In(store).Buckets() {
			list = append(list, b.Name())
		}
	})
	return list, cobra.ShellCompDirectiveNoFileComp
}

// completeFlags completes the values of the flags of all verbs. Cobra keeps these functions, and
// with them all commands of root, until the process exits: a run calls this only to complete.
func completeFlags(root *cobra.Command) {
	for _, leaf := range leaves(root) {
		completers := flagCompleters()
		maps.Copy(completers, nounCompleters(leaf.Parent().Name()))
		if leaf.CommandPath() == "oribi table export" {
			completers["format"], completers["long-string-columns"] = verb.Words(nearest.Keys(exportcmd.Formats)...),
				completeColumns
			completers["compression"] = verb.Words("zstd", "snappy", "gzip", "none")
		}
		if leaf.Name() == "agg" {
			completers["by"] = completeColumns
		}
		if strings.Contains(leaf.Use, " FS WHAT") {
			leaf.ValidArgsFunction = kuducmd.CompleteTablets(leaf.ValidArgsFunction)
		}
		for name, complete := range completers {
			if leaf.Flags().Lookup(name) != nil {
				_ = leaf.RegisterFlagCompletionFunc(name, complete) // the flag exists
			}
		}
	}
}
