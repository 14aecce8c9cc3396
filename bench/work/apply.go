package work

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"

	"github.com/cockroachdb/pebble/v2"
	"github.com/go-json-experiment/json"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// apply measures "oribi apply" on the history of a source tree. Both peers are processes, measured
// from start to end: they read and parse the file, open a store with an empty table, commit each
// line as one batch, and close the store.
func apply() harness.Workload {
	return harness.Workload{
		Name: "apply",
		About: "apply the history of a source tree: one write batch per commit, no sync, from the file to the closed " +
			"store",
		Unit: "s", Fresh: true, MemoryLimit: peakLimit,
		Inputs: func(env *harness.Env) error {
			return inputs.WriteTree(env.Input(treeBatches), env.Root, env.Corpus, env.Scale.Commits)
		},
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Prepare: prepareTree, Command: applyCommand, Check: checkTree},
			{Name: "pebble", Command: func(env *harness.Env) (*exec.Cmd, error) {
				return env.Self(context.Background())
			},
				Act: applyPebble, Check: checkPebbleDir},
		},
		Floors: []harness.Floor{{Peer: "oribi", Figure: 3, Against: "pebble", Ratio: 2}},
	}
}

func prepareTree(env *harness.Env) error {
	schemaFile := env.Path("tree.json")
	if err := os.WriteFile(schemaFile, []byte(inputs.TreeSchemaFile), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"store", "init", env.Path(storeDir)},
		{"table", "create", env.Path(storeDir), inputs.TreeTable, "--schema", schemaFile}} {
		if out, err := exec.Command(env.Tool, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

func applyCommand(env *harness.Env) (*exec.Cmd, error) {
	return exec.Command(env.Tool, "apply", "--no-sync", env.Path(storeDir), env.Input(treeBatches)), nil
}

func checkTree(env *harness.Env) (string, error) {
	store, err := oribi.Open(env.Path(storeDir), &oribi.Options{ReadOnly: true})
	if err != nil {
		return "", err
	}
	defer store.Close()
	t, err := store.Table(inputs.TreeTable)
	if err != nil {
		return "", err
	}
	var sum checksum
	var value []byte
	for b, err := range t.Scan(context.Background()).Batches() {
		if err != nil {
			return "", err
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			value = appendText(appendText(value[:0], b.Columns[1].Cell(i)), b.Columns[2].Cell(i))
			value = append(append(value, b.Columns[3].Cell(i)...), b.Columns[4].Cell(i)...)
			sum.add(b.Columns[0].Cell(i), value)
		}
	}
	return sum.String(), nil
}

// treeBatch is a line of the input as a program would parse it.
type treeBatch struct {
	Ops []struct {
		Op    string  `json:"op"`
		Table string  `json:"table"`
		Row   treeRow `json:"row"`
		Key   treeRow `json:"key"`
	} `json:"ops"`
}

type treeRow struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
	Blob string `json:"blob"`
	Size int64  `json:"size"`
	Seq  int32  `json:"seq"`
}

// applyPebble does what a program without the engine would do: parse, encode, and write without a
// read; updates replace the value.
func applyPebble(env *harness.Env) error {
	in, err := os.Open(env.Input(treeBatches))
	if err != nil {
		return err
	}
	defer in.Close()
	db, err := openPebble(env.Path(storeDir), false)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	var value []byte
	for err == nil && lines.Scan() {
		var line treeBatch
		if err = json.Unmarshal(lines.Bytes(), &line); err != nil {
			break
		}
		b := db.NewBatch()
		for i := range line.Ops {
			op := &line.Ops[i]
			if op.Op == "delete" {
				b.Delete([]byte(op.Key.Path), nil)
				continue
			}
			value = appendText(appendText(value[:0], op.Row.Mode), op.Row.Blob)
			value = binary.LittleEndian.AppendUint64(value, uint64(op.Row.Size))
			value = binary.LittleEndian.AppendUint32(value, uint32(op.Row.Seq))
			b.Set([]byte(op.Row.Path), value, nil)
		}
		err = b.Commit(pebble.NoSync)
		b.Close()
	}
	if err == nil {
		err = lines.Err()
	}
	return closeAll(err, db)
}

func checkPebbleDir(env *harness.Env) (string, error) {
	db, err := openPebble(env.Path(storeDir), true)
	if err != nil {
		return "", err
	}
	defer db.Close()
	return checkPebble(db)
}
