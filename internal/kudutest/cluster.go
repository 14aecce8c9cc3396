package kudutest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// Cluster is a Kudu cluster on the loopback interface: a master, tablet servers, and a client. It
// ends with the test. Its methods end the test if they fail.
type Cluster struct {
	Master  string // the addresses of the masters, between commas
	Masters []*Server
	Servers []*Server
	Flags   []string // more flags of all servers, which replace others

	t         testing.TB
	kudu      string // the program
	dir       string
	client    *client
	classPath string
}

// Server is a tablet server or a master of a cluster.
type Server struct {
	Dir     string // its only root, or the directory of its roots
	Address string
	Flags   []string  // more flags, which replace others
	running *exec.Cmd // nil: stopped
}

// UseRoots gives a server that was never started one root for its log, and n roots for data, in
// s.Dir.
func (s *Server) UseRoots(n int) error {
	var data []string
	for i := range n {
		data = append(data, filepath.Join(s.Dir, fmt.Sprintf("data%d", i)))
	}
	s.Flags = append(s.Flags, "--fs_wal_dir="+filepath.Join(s.Dir, "wal"), "--fs_data_dirs="+strings.Join(data, ","))
	return os.Mkdir(s.Dir, 0o755)
}

// deadline is how long a test waits for a server before it fails.
const deadline = 60 * time.Second

// common are the flags of all servers and tools. They make a server start fast and keep all
// history, and none asks for clocks or metadata outside of the machine. A server would also refuse
// a disk with less than a hundredth of its space free.
var common = []string{"--unlock_unsafe_flags", "--unlock_experimental_flags", "--time_source=system_unsync",
	"--rpc_authentication=disabled",
	"--rpc_encryption=disabled", "--never_fsync=true", "--logtostderr", "--minloglevel=1",
	"--log_preallocate_segments=false",
	"--log_container_preallocate_bytes=0", "--block_cache_capacity_mb=64", "--webserver_enabled=false",
	"--ipki_server_key_size=1024",
	"--ipki_ca_key_size=1024", "--tsk_num_rsa_bits=512", "--cloud_metadata_server_request_timeout_ms=50",
	"--tablet_history_max_age_sec=-1",
	"--fs_data_dirs_reserved_bytes=0", "--fs_wal_dir_reserved_bytes=0",
	"--cloud_aws_instance_id_url=http://127.0.0.1:9/", "--cloud_azure_instance_id_url=http://127.0.0.1:9/",
	"--cloud_gce_instance_id_url=http://127.0.0.1:9/", "--cloud_openstack_metadata_url=http://127.0.0.1:9/"}

// neverStarted is the failure of the first cluster that did not start. Later clusters fail with it
// at once: where one does not start, none does, and each would wait until the deadline.
var neverStarted atomic.Pointer[string]

// NewCluster makes the directories of a cluster; nothing runs yet. The test is skipped if it is
// short, or without Kudu's programs.
func NewCluster(t testing.TB, servers int) *Cluster {
	t.Helper()
	if failure := neverStarted.Load(); failure != nil {
		t.Fatalf("an earlier cluster did not start: %s", *failure)
	}
	if testing.Short() {
		t.Skip("starts Kudu's servers")
	}
	c := &Cluster{t: t, dir: t.TempDir()}
	c.AddMaster()
	tools := filepath.Join(corpustest.Dir(t), "tools", "kudu")
	tool := func(name string) string {
		out, err := exec.CommandContext(t.Context(), filepath.Join(tools, name)).Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w: %s", err, exit.Stderr)
			}
			t.Skipf("Kudu cannot be installed here: %v", err)
		}
		return strings.TrimSpace(string(out))
	}
	c.kudu, c.classPath = filepath.Join(tool("install"), "kudu"), tool("install-client")
	for i := range servers {
		c.Servers = append(c.Servers, &Server{Dir: filepath.Join(c.dir, fmt.Sprintf("ts%d", i)),
			Address: freeAddress(t)})
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("servers log:\n%s", c.errors())
		}
		for _, s := range slices.Concat(c.Servers, c.Masters) {
			c.Stop(s)
		}
		if c.client != nil {
			stop(c.client.java)
		}
	})
	return c
}

// freeAddress returns an address on the loopback interface that nothing uses.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback interface: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Start starts the master, all tablet servers, and the client, and waits until the master knows the
// servers.
func (c *Cluster) Start() {
	c.t.Helper()
	for _, s := range c.Servers {
		c.StartServer(s)
	}
	c.StartMaster()
	err := wait(func() error {
		r, err := c.client.call(Request{"cmd": "nservers"})
		if err == nil && r.N < len(c.Servers) {
			err = fmt.Errorf("%d servers are known", r.N)
		}
		return err
	})
	if err != nil {
		failure := fmt.Sprintf("%v\n%s", err, c.errors())
		neverStarted.Store(&failure)
		c.t.Fatal(err)
	}
}

// StartServer starts a tablet server. Unless its flags say otherwise, it does not collect history,
// and compacts and flushes nothing.
func (c *Cluster) StartServer(s *Server) {
	c.t.Helper()
	args := []string{"tserver", "run", "--fs_wal_dir=" + s.Dir, "--rpc_bind_addresses=" + s.Address,
		"--tserver_master_addrs=" + c.Master,
		"--heartbeat_interval_ms=100", "--raft_heartbeat_interval_ms=100", "--enable_maintenance_manager=false"}
	s.running = c.spawn(filepath.Base(s.Dir), s.Flags, args...)
}

// Stop ends a server as a crash does, which is how Kudu's servers end; nil does for all.
func (c *Cluster) Stop(s *Server) {
	if s != nil {
		stop(s.running)
		s.running = nil
	}
}

func stop(p *exec.Cmd) {
	if p != nil {
		p.Process.Kill()
		p.Wait() // killed: an error
	}
}

// spawn starts a server, whose messages go to a file. flags replace common ones.
func (c *Cluster) spawn(name string, flags []string, args ...string) *exec.Cmd {
	c.t.Helper()
	log := must.Get(os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))(c.t)
	defer log.Close() // the server has its own
	p := exec.Command(c.kudu, slices.Concat(args, common, c.Flags, flags)...)
	p.Stdout, p.Stderr, p.Env = log, log, environment()
	dieWithParent(p)
	must.Do(c.t, p.Start())
	return p
}

// environment returns the environment of this process without the variables of proxies, which the
// servers would use for connections among themselves.
func environment() (env []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			env = append(env, v)
		}
	}
	return env
}

// errors returns the last messages of the servers.
func (c *Cluster) errors() string {
	var out strings.Builder
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log")) // the pattern is well-formed
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var found []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "E") || strings.HasPrefix(line, "F") || strings.Contains(line, "Corruption") {
				found = append(found, line)
			}
		}
		fmt.Fprintf(&out, "%s:\n%s", filepath.Base(name), strings.Join(found[max(0, len(found)-8):], ""))
	}
	return out.String()
}

// Program returns the directory of a program kudu that has the flags which the cluster needs.
func (c *Cluster) Program() (dir string) {
	c.t.Helper()
	dir = filepath.Join(c.dir, "bin")
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kudu"),
			fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\" %s\n", c.kudu, strings.Join(common, " ")), 0o755)
	}
	must.Do(c.t, err)
	return dir
}

// Tool runs a command of Kudu and returns its output.
func (c *Cluster) Tool(args ...string) string {
	c.t.Helper()
	out, err := c.TryTool(args...)
	if err != nil {
		c.t.Fatalf("kudu %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// TryTool runs a command of Kudu and returns its output, and an error if it fails.
func (c *Cluster) TryTool(args ...string) (string, error) {
	p := exec.Command(c.kudu, slices.Concat(args, common)...)
	var out, errs bytes.Buffer
	p.Stdout, p.Stderr, p.Env = &out, &errs, environment()
	if err := p.Run(); err != nil {
		return "", fmt.Errorf("%w: %s%s", err, out.String(), errs.String())
	}
	return out.String(), nil
}

// Wait waits until a command of Kudu succeeds, and returns its output.
func (c *Cluster) Wait(args ...string) (out string) {
	c.t.Helper()
	c.until(func() (err error) { out, err = c.TryTool(args...); return err })
	return out
}

// until repeats a step that fails until the servers are ready.
func (c *Cluster) until(step func() error) {
	c.t.Helper()
	must.Do(c.t, wait(step))
}

// wait repeats a step until it succeeds, at most until the deadline.
func wait(step func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	for {
		err := step()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("after %v: %w", deadline, err)
		}
	}
}
