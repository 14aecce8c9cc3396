// Package cli is the command line of oribi: its verbs, its flags, its exit codes.
//
// Each verb parses its arguments, opens the store, and leaves the work to the store and to the
// packages next to this one. The error that a verb returns determines the exit code, in exitCode
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
	a := &app{stdin: in, stdout: &stdout{out: out}, stderr: errs, file: out, errFile: errs}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	limitMemory()
	root := a.commands()
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		completeFlags(root)
	}
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started {
		err = usage(err)
	}
	if err == nil {
		err = a.helpErr
	}
	code := exitCode(err)
	if code != 0 {
		fmt.Fprintf(a.stderr, "oribi: %s\n", message(err, code))
		if h, ok := errors.AsType[*helped](err); ok {
			fmt.Fprintf(a.stderr, "%s\n", celltext.Printable(h.help))
		}
	}
	if e, ok := errors.AsType[*reportedError](err); ok {
		io.WriteString(a.stderr, e.report)
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
		debug.SetMemoryLimit(heapRatio * memoryLimit)
	}
}

// commands builds the tree of nouns and verbs.
func (a *app) commands() *cobra.Command {
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
				return a.printVersion()
			}
			return a.printHelp(cmd)
		},
	}
	root.PersistentFlags().BoolVar(&a.quiet, "quiet", false, "show no progress on a terminal")
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.AddCommand(
		a.noun("store", "Make, describe, and check stores", a.storeInit(), a.storeInfo(), a.storeDu(), a.storeDump(),
			a.storeVerify(), a.storeCheckpoint(),
			a.storeBackup(), a.storeBackups(), a.storeRestore(), a.storePrune(), a.storeSalvage()),
		a.noun("table", "Create, list, read, and change tables", a.tableCreate(), a.tableList(), a.tableDescribe(),
			a.tableAlter(), a.tableRename(), a.tableTruncate(), a.tableDrop(),
			a.tableScan(), a.tableGet(), a.tableCount(), a.tableAgg(), a.tablePut(), a.tableUpdate(), a.tableDelete(),
			a.tableRestore(), a.tableHistory(), a.tableDiff(), a.tableFlush(), a.tableCompact(), a.tableLayout(),
			a.tableLoad(), a.tableExport(), a.tableExtract()),
		a.noun("kv", "Store keys and values in buckets", a.kvPut(), a.kvGet(), a.kvDelete(), a.kvScan(), a.kvHistory(),
			a.kvLoad(), a.kvExport(), a.kvBuckets()),
		a.noun("cfile", "Read and write column files", a.cfileInfo(), a.cfileDump(), a.cfileSeek(), a.cfileBlocks(),
			a.cfileVerify(), a.cfileWrite(), a.cfileAdvise()),
		a.noun("bloom", "Read bloom files", a.bloomInfo(), a.bloomProbe()),
		a.noun("delta", "Read delta files", a.deltaDump()),
		a.noun("hfile", "Read and write HFiles of HBase and Hudi", a.hfileInfo(), a.hfileDump(),
			a.hfileSeek(), a.hfileProbe(),
			a.hfileVerify(), a.hfileWrite()),
		a.noun("carbondata", "Read and write Apache CarbonData: files, folders, and tables", a.carbonInfo(),
			a.carbonSchema(), a.carbonDump(), a.carbonVerify(), a.carbonWrite()),
		a.noun("kudu", "Read the directories of Apache Kudu tablet servers, and make tablets there", a.kuduList(),
			a.kuduDescribe(), a.kuduScan(), a.kuduDiff(), a.kuduHistory(), a.kuduVerify(), a.kuduImport(),
			a.kuduExport(), a.kuduInstall()),
		a.noun("lab", "Compare compaction policies by experiments", a.labRun(), a.labPolicies(),
			a.labWorkloads(), a.labScore()),
		a.inspect(), a.apply(), a.time(), a.demo(), a.completion(root), a.version(),
	)
	waitFlags(root)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.helpErr = a.printHelp(cmd) })
	root.SetHelpCommand(a.helpCommand(root))
	root.SetFlagErrorFunc(flagError)
	return root
}

// noun groups verbs.
func (a *app) noun(name, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			return seeHelp(cmd, fmt.Errorf("%s: the verb is missing", name))
		}}
	c.AddCommand(verbs...)
	return c
}
