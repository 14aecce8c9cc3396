package main

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/work"
)

// scans returns the peers that scan with a server, for the programs that home names.
func scans(home func() (string, error)) (more []work.More) {
	for _, c := range work.KuduScans {
		for _, p := range work.KuduScanners {
			more = append(more, work.More{Workload: c.Workload, Peer: harness.Peer{Name: p.Name,
				Prepare: func(env *harness.Env) error { return prepareScan(env, home, &c) },
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return measureScan(env, home, &c, p.Format)
				}}})
		}
	}
	return more
}

// prepareScan makes the directories of a master and a tablet server with the table.
func prepareScan(env *harness.Env, home func() (string, error), c *work.KuduScan) error {
	h, err := home()
	if err != nil {
		return err
	}
	p, err := readPaths(h)
	if err != nil {
		return err
	}
	if c.Large {
		return generate(p.servers, env.Dir, c.Rows(env))
	}
	if err := c.Prepare(env); err != nil {
		return err
	}
	return rebuildMaster(p.servers, env.Dir)
}

// generate fills a table with Kudu's load generator, with its defaults, and flushes and compacts
// it.
func generate(programs, dir string, rows int) error {
	s, err := startServers(programs, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	err = s.tool("perf", "loadgen", s.masterRPC, "--keep_auto_table", "--table_num_replicas=1",
		"--num_threads="+strconv.Itoa(loadThreads),
		"--num_rows_per_thread="+strconv.Itoa(rows/loadThreads))
	if err == nil {
		err = s.finishWork()
	}
	return errors.Join(err, s.sync())
}

// loadThreads is the number of threads of the load generator.
const loadThreads = 2

// rebuildMaster makes the directory of a master that knows the tablets of the tablet server in dir.
func rebuildMaster(programs, dir string) error {
	s := &servers{programs: programs, dir: dir}
	if err := s.startTablets("127.0.0.1:9", quietFlags...); err != nil { // an address without a server
		return err
	}
	defer s.stop()
	master := filepath.Join(dir, "master")
	args := append(append([]string{"master", "unsafe_rebuild", s.rpc}, flags(master)...), masterFlags...)
	for end := time.Now().Add(startTimeout); ; time.Sleep(lookEvery) {
		err := s.tool(args...) // fails until the tablets are open
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// quietFlags keep the tablet server from flushing and compacting, which would change what is read.
var quietFlags = []string{"--enable_maintenance_manager=false"}

// measureScan makes a client scan, which gets rows in the given format, and measures the tablet server.
func measureScan(
	env *harness.Env, home func() (string, error), c *work.KuduScan, format string,
) (m harness.Measurement, err error) {
	d, table, err := work.KuduTable(env)
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		return m, err
	}
	h, err := home()
	if err != nil {
		return m, err
	}
	l, err := startCluster(h, env.Dir, quietFlags...)
	if err != nil {
		return m, err
	}
	defer l.end()
	measure := scanRows
	if format == work.KuduColumns {
		measure = scanColumns
	}
	return measure(l, env, table, c.Columns)
}

// scanColumns makes package kudu/client scan.
func scanColumns(c *cluster, env *harness.Env, table string, columns []string) (m harness.Measurement, err error) {
	r, err := c.reader(table, columns)
	if err != nil {
		return m, err
	}
	env.Watch([]int{c.tablet.Process.Pid})
	if env.Round == 0 {
		if m.Checksum, err = r.check(); err != nil {
			return m, err
		}
	}
	if err := r.use(1, 0); err != nil { // fills the block cache
		return m, err
	}
	took, err := env.Clock(func() error { return r.use(2, work.KuduEnough(env)) })
	work.KuduResult(env, &m, r.rows, took)
	return m, err
}

// scanRows makes Kudu's own client scan, since package kudu/client asks for columns only.
func scanRows(c *cluster, env *harness.Env, table string, columns []string) (m harness.Measurement, err error) {
	client, err := c.java()
	if err != nil {
		return m, err
	}
	defer client.End()
	list := "-"
	if columns != nil {
		list = strings.Join(columns, ",")
	}
	if _, err := client.Ask(nil, "scans", table, work.KuduByRow, list); err != nil {
		return m, err
	}
	env.Watch([]int{c.tablet.Process.Pid})
	if env.Round == 0 {
		sums, err := client.Numbers(2, "check")
		if err != nil {
			return m, err
		}
		m.Checksum = work.KuduSum(sums[0], uint64(sums[1]))
	}
	if _, err := client.Numbers(2, "scan", "1", "0"); err != nil { // fills the block cache
		return m, err
	}
	var got []int64
	if _, err := env.Clock(func() (err error) {
		got, err = client.Numbers(2, "scan", "2", strconv.FormatInt(work.KuduEnough(env).Milliseconds(), 10))
		return err
	}); err != nil {
		return m, err
	}
	work.KuduResult(env, &m, got[0], time.Duration(got[1]))
	return m, nil
}
