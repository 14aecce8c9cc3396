package work

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// load measures "oribi table load": processes, from start to end. The store has an empty table. The
// file is read and parsed, and the rows are checked, written and made durable.
func load(more []harness.Peer) harness.Workload {
	w := harness.Workload{
		Name: "load",
		About: "load lineitem from a text file into an empty table with a primary key, from the file to the closed " +
			"store",
		Unit: "s", Fresh: true, MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: append([]harness.Peer{{Name: "oribi", Ours: true, Prepare: prepareLoad, Command: loadCommand,
			Check: countLoaded(lineitemTable)}}, more...),
		Floors: []harness.Floor{{Peer: "oribi", Figure: inputs.LineitemRows / 300e3}},
	}
	if len(more) > 0 {
		w.Floors = append(w.Floors, harness.Floor{Peer: "oribi", Against: more[0].Name, Ratio: 0.3})
	}
	return w
}

// loadPackages does the same with strings, many of which are distinct, and a key of three of them
// in no order.
func loadPackages() harness.Workload {
	return harness.Workload{
		Name: "load-packages",
		About: "load 63,666 Debian packages (from the corpus) from a CSV file into an empty table, from the file to " +
			"the closed store",
		Unit: "s", Fresh: true, MemoryLimit: peakLimit, Inputs: packagesInputs,
		Peers: []harness.Peer{{Name: "oribi", Ours: true, Prepare: preparePackages, Command: packagesCommand,
			Check: countLoaded(packagesTable)}},
		Floors: []harness.Floor{{Peer: "oribi", Figure: inputs.PackagesRows / 150e3}},
	}
}

// scanCSV measures "oribi table scan" of all of lineitem as CSV, from start to end.
func scanCSV() harness.Workload {
	return harness.Workload{
		Name: "scan-csv", About: "print lineitem as CSV in key order, from the closed store to the last byte",
		Unit: "s", MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{{Name: "oribi", Ours: true, Prepare: prepareStore,
			Command: func(env *harness.Env) (*exec.Cmd, error) {
				return intoFile(env, exec.Command(env.Tool, "table", "scan", env.Path(storeDir),
					lineitemTable, "--format", "csv"))
			}, Check: checkOutput}},
		Floors: []harness.Floor{{Peer: "oribi", Figure: inputs.LineitemRows / 1e6}},
	}
}

// getStart measures "oribi table get" of one row in a store with many rowsets: mostly the start of
// the process.
func getStart() harness.Workload {
	return harness.Workload{
		Name: "get-start",
		About: "read one row of lineitem by key, each in its own process, from a store of 100 rowsets (10 at small " +
			"scale)",
		Unit: "s", MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{{Name: "oribi", Ours: true, Prepare: prepareSets,
			Command: func(env *harness.Env) (*exec.Cmd, error) {
				return intoFile(env, exec.Command(env.Tool, "table", "get", env.Path(storeDir), lineitemTable,
					`{"l_orderkey":1,"l_linenumber":3}`))
			}, Check: checkOutput}},
		Floors: []harness.Floor{{Peer: "oribi", Figure: 0.040}},
	}
}

const (
	packagesTable = "packages"
	packagesCSV   = "packages.csv"
	outputFile    = "output"
)

func packagesInputs(env *harness.Env) error {
	return inputs.WritePackages(env.Input(packagesCSV), env.Corpus)
}

func prepareLoad(env *harness.Env) error {
	store, _, err := createLineitem(env.Path(storeDir), nil)
	if err != nil {
		return err
	}
	return store.Close()
}

func loadCommand(env *harness.Env) (*exec.Cmd, error) {
	return exec.Command(env.Tool, "table", "load", env.Path(storeDir), lineitemTable, env.Input(Lineitem),
		"--input-format", "csv", "--delimiter", "|", "--no-header", "--columns",
		strings.Join(inputs.LineitemFields, ",")), nil
}

func preparePackages(env *harness.Env) error {
	for _, args := range [][]string{{"store", "init", env.Path(storeDir)},
		{"table", "create", env.Path(storeDir), packagesTable, "--schema", env.Path("schema.json")}} {
		if err := os.WriteFile(env.Path("schema.json"), []byte(inputs.PackagesSchemaFile), 0o600); err != nil {
			return err
		}
		if out, err := exec.Command(env.Tool, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

func packagesCommand(env *harness.Env) (*exec.Cmd, error) {
	return exec.Command(env.Tool, "table", "load", env.Path(storeDir), packagesTable, env.Input(packagesCSV)), nil
}

// countLoaded returns the number of rows of a table.
func countLoaded(table string) func(env *harness.Env) (string, error) {
	return func(env *harness.Env) (string, error) {
		out, err := exec.Command(env.Tool, "table", "count", env.Path(storeDir), table).Output()
		return strings.TrimSpace(string(out)) + " rows", err
	}
}

// intoFile redirects the output of a command to a file in the peer's directory.
func intoFile(env *harness.Env, cmd *exec.Cmd) (*exec.Cmd, error) {
	out, err := os.Create(env.Path(outputFile))
	cmd.Stdout = out
	return cmd, err
}

func checkOutput(env *harness.Env) (string, error) {
	f, err := os.Open(env.Path(outputFile))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return fmt.Sprintf("%d bytes %.8x", n, h.Sum(nil)), err
}
