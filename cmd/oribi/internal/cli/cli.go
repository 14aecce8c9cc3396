// Package cli is the command line of oribi: its verbs, its flags, its exit codes.
//
// Each verb parses its arguments, opens the store, and leaves the work to the store and to the
// packages next to this one. The error that a verb returns determines the exit code, in Code
// alone.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carboncmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exportcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/filecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/kuducmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/kvcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/labcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/loadcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/storecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/tablecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/celltext"
)

// Main runs the command and returns its exit code.
func Main(args []string, in, out, errs *os.File) int {
	// Writing to a pipe whose reader has gone returns an error, which ends the run with exit code
	// 0, instead of raising a signal.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	return Run(ctx, args, in, out, errs)
}

// Run is Main without the handling of signals: the run ends when ctx is canceled.
func Run(ctx context.Context, args []string, in, out, errs *os.File) int {
	a := &console.Console{Stdin: in, Stdout: &console.Stdout{Out: out}, Stderr: errs, File: out, ErrFile: errs}
	return run(ctx, a, args)
}

func run(ctx context.Context, a *console.Console, args []string) int {
	limitMemory()
	root := commands(a)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		completeFlags(root)
	}
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.Started {
		err = exit.Usage(err)
	}
	if err == nil {
		err = a.HelpErr
	}
	code := exit.Code(err)
	if code != 0 {
		fmt.Fprintf(a.Stderr, "oribi: %s\n", exit.Message(err, code))
		if h, ok := errors.AsType[*exit.Helped](err); ok {
			fmt.Fprintf(a.Stderr, "%s\n", celltext.Printable(h.Help))
		}
	}
	if e, ok := errors.AsType[*exit.Reported](err); ok {
		io.WriteString(a.Stderr, e.Report)
	}
	return code
}

// heapRatio is the ratio of the command's memory limit to the memory limit of its stores. The
// difference is for garbage between two collections, buffers of input and output, and the runtime.
const heapRatio = 2

// limitMemory sets the runtime's memory limit from the limit of stores, unless the user has set
// GOMEMLIMIT.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapRatio * access.MemoryLimit)
	}
}

// commands builds the tree of nouns and verbs.
func commands(a *console.Console) *cobra.Command {
	cobra.EnableCommandSorting = false // help lists them in the order of this function
	version := false
	root := &cobra.Command{
		Use:                "oribi",
		Short:              "A columnar storage engine: typed tables with a readable history, in one directory",
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			if version {
				return printVersion(a)
			}
			return printHelp(a, cmd)
		},
	}
	root.PersistentFlags().BoolVar(&a.Quiet, "quiet", false, "show no progress on a terminal")
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.AddCommand(
		noun(a, "store", "Make, describe, and check stores", storecmd.Init(a), storecmd.Info(a), storecmd.Du(a),
			storecmd.Dump(a),
			storecmd.Verify(a), storecmd.Checkpoint(a),
			storecmd.Backup(a), storecmd.Backups(a), storecmd.Restore(a), storecmd.Prune(a), storecmd.Salvage(a)),
		noun(a, "table", "Create, list, read, and change tables", tablecmd.Create(a), tablecmd.List(a), tablecmd.Describe(a),
			tablecmd.Alter(a), tablecmd.Rename(a), tablecmd.Truncate(a), tablecmd.Drop(a),
			tablecmd.Scan(a), tablecmd.Get(a), tablecmd.Count(a), tablecmd.Agg(a), tablecmd.Put(a),
			tablecmd.Update(a), tablecmd.Delete(a),
			tablecmd.Restore(a), tablecmd.History(a), tablecmd.Diff(a), tablecmd.Flush(a), tablecmd.Compact(a),
			tablecmd.Layout(a),
			loadcmd.Load(a), exportcmd.Export(a), tablecmd.Extract(a)),
		noun(a, "kv", "Store keys and values in buckets", kvcmd.Put(a), kvcmd.Get(a), kvcmd.Delete(a),
			kvcmd.Scan(a), kvcmd.History(a),
			kvcmd.Load(a), kvcmd.Export(a), kvcmd.Buckets(a)),
		noun(a, "cfile", "Read and write column files", filecmd.CFileInfo(a), filecmd.CFileDump(a),
			filecmd.CFileSeek(a), filecmd.CFileBlocks(a),
			filecmd.CFileVerify(a), filecmd.CFileWrite(a), filecmd.CFileAdvise(a)),
		noun(a, "bloom", "Read bloom files", filecmd.BloomInfo(a), filecmd.BloomProbe(a)),
		noun(a, "delta", "Read delta files", filecmd.DeltaDump(a)),
		noun(a, "hfile", "Read and write HFiles of HBase and Hudi", hfilecmd.Info(a), hfilecmd.Dump(a),
			hfilecmd.Seek(a), hfilecmd.Probe(a),
			hfilecmd.Verify(a), hfilecmd.Write(a)),
		noun(a, "carbondata", "Read and write Apache CarbonData: files, folders, and tables", carboncmd.Info(a),
			carboncmd.Schema(a), carboncmd.Dump(a), carboncmd.Verify(a), carboncmd.Write(a)),
		noun(a, "kudu", "Read the directories of Apache Kudu tablet servers, and make tablets there", kuducmd.List(a),
			kuducmd.Describe(a), kuducmd.Scan(a), kuducmd.Diff(a), kuducmd.History(a), kuducmd.Verify(a), kuducmd.Import(a),
			kuducmd.Export(a), kuducmd.Install(a), kuducmd.Push(a), kuducmd.Sync(a), kuducmd.Pull(a), kuducmd.Compare(a)),
		noun(a, "lab", "Compare compaction policies by experiments", labcmd.Run(a), labcmd.Policies(a),
			labcmd.Workloads(a), labcmd.Score(a)),
		storecmd.Inspect(a), applyVerb(a), timeVerb(a), demoVerb(a), completion(a, root), versionVerb(a),
	)
	waitFlags(root)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.HelpErr = printHelp(a, cmd) })
	root.SetHelpCommand(helpCommand(a, root))
	root.SetFlagErrorFunc(flagError)
	return root
}

// noun groups verbs.
func noun(a *console.Console, name, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			return verb.SeeHelp(cmd, fmt.Errorf("%s: the verb is missing", name))
		}}
	c.AddCommand(verbs...)
	return c
}

// Examples returns the examples of all verbs, by command; an entry is empty if a verb has none.
func Examples() map[string]string {
	list := map[string]string{}
	for _, verb := range leaves(commands(new(console.Console))) {
		list[verb.CommandPath()] = examples[verb.CommandPath()]
	}
	return list
}
