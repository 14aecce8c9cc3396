package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/bench/process"
)

// servers are a master and a tablet server with their data in one directory.
type servers struct {
	programs, dir  string // the directories of the servers' programs and of their data
	master, tablet *process.Process
	masterRPC, rpc string // addresses
	web            string // address of the tablet server's web pages
}

// memoryLimit is the memory limit of the tablet server: four times the cache, as for DuckDB.
const memoryLimit = 4 * peer.CacheBytes

// startTimeout is the maximum time to start a server, and to complete its background work.
const startTimeout = 5 * time.Minute

// flags returns the flags of both servers: the loopback interface, ports chosen by the system, no
// clock synchronization, no encryption, no cloud detection. Files are not preallocated, since their
// disk usage is measured.
func flags(dir string) []string {
	f := []string{"--unlock_unsafe_flags", "--unlock_experimental_flags",
		"--fs_wal_dir=" + dir, "--fs_data_dirs=" + dir,
		"--rpc_bind_addresses=127.0.0.1:0", "--rpc_server_allow_ephemeral_ports",
		"--webserver_interface=127.0.0.1", "--webserver_port=0",
		"--server_dump_info_path=" + infoFile(dir), "--server_dump_info_format=json", "--time_source=system_unsync",
		"--rpc_authentication=disabled", "--rpc_encryption=disabled", "--ipki_server_key_size=1024",
		"--log_preallocate_segments=false", "--log_container_preallocate_bytes=0", "--logtostderr",
		"--minloglevel=1", "--enable_minidumps=false",
		"--cloud_metadata_server_request_timeout_ms=50"}
	for _, cloud := range []string{"aws_instance_id", "azure_instance_id", "gce_instance_id", "openstack_metadata"} {
		f = append(f, "--cloud_"+cloud+"_url=http://127.0.0.1:9/") // an address without a server
	}
	return f
}

// infoFile is the file to which a server writes its addresses once it listens.
func infoFile(dir string) string { return dir + ".json" }

// startServers starts both servers on the contents of dir. more are flags of the tablet server.
func startServers(programs, dir string, more ...string) (*servers, error) {
	dir, err := filepath.Abs(dir) // they refuse relative paths
	if err != nil {
		return nil, err
	}
	s := &servers{programs: programs, dir: dir}
	if s.master, s.masterRPC, _, err = s.start("master", masterFlags...); err == nil {
		err = s.startTablets(s.masterRPC, more...)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// masterFlags are more flags of the master.
var masterFlags = []string{"--default_num_replicas=1", "--ipki_ca_key_size=1024", "--tsk_num_rsa_bits=512"}

// startTablets starts the tablet server.
func (s *servers) startTablets(master string, more ...string) (err error) {
	s.tablet, s.rpc, s.web, err = s.start("tserver",
		append([]string{"--tserver_master_addrs=" + master, "--heartbeat_interval_ms=100",
			fmt.Sprintf("--block_cache_capacity_mb=%d", peer.CacheBytes>>20),
			fmt.Sprintf("--memory_limit_hard_bytes=%d", memoryLimit)}, more...)...)
	return err
}

// tool runs Kudu's command.
func (s *servers) tool(args ...string) error {
	_, err := process.Output(exec.Command(filepath.Join(s.programs, "kudu"), args...))
	return err
}

// start starts one server, and waits until it listens.
func (s *servers) start(name string, more ...string) (p *process.Process, rpc, web string, err error) {
	dir := filepath.Join(s.dir, name)
	if err := errors.Join(os.MkdirAll(dir, 0o755), removeAny(infoFile(dir))); err != nil {
		return nil, "", "", err
	}
	p, err = process.Start("kudu-"+name, dir+".log",
		exec.Command(filepath.Join(s.programs, "kudu-"+name), append(flags(dir), more...)...))
	if err != nil {
		return nil, "", "", err
	}
	for end := time.Now().Add(startTimeout); ; {
		if rpc, web, ok := addresses(infoFile(dir)); ok {
			return p, rpc, web, nil
		}
		select {
		case <-p.Ended:
			return nil, "", "", p.Died()
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(end) {
			p.Kill()
			return nil, "", "", fmt.Errorf("%s does not listen after %v", p.Name, startTimeout)
		}
	}
}

func removeAny(name string) error {
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// addresses reads the file that a server writes about itself, once it is complete.
func addresses(name string) (rpc, web string, ok bool) {
	type address struct {
		Host string
		Port int
	}
	var info struct {
		RPC []address `json:"bound_rpc_addresses"`
		Web []address `json:"bound_http_addresses"`
	}
	text, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(text, &info) != nil || len(info.RPC) == 0 || len(info.Web) == 0 {
		return "", "", false
	}
	return fmt.Sprintf("%s:%d", info.RPC[0].Host, info.RPC[0].Port),
		fmt.Sprintf("%s:%d", info.Web[0].Host, info.Web[0].Port), true
}

func (s *servers) stop() {
	s.tablet.Kill()
	s.master.Kill()
}

// sync syncs all files. The servers do not sync their logs themselves.
func (s *servers) sync() error {
	return filepath.WalkDir(s.dir, func(name string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // a compaction removed it concurrently
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// set changes a flag of the running tablet server.
func (s *servers) set(flag, value string) error {
	return s.tool("tserver", "set_flag", s.rpc, flag, value, "--force")
}

// finishWork makes the tablet server do its background work now: flush memory, and compact. No
// command does that, so finishWork sets thresholds that make everything due, and waits.
func (s *servers) finishWork() error {
	for _, f := range []struct{ flag, eager, own string }{{"flush_threshold_secs", "1", "120"},
		{"flush_threshold_mb", "1", "1024"}} {
		if err := s.set(f.flag, f.eager); err != nil {
			return err
		}
		defer s.set(f.flag, f.own)
	}
	quiet := 0
	for end := time.Now().Add(startTimeout); quiet < quietLooks; time.Sleep(lookEvery) {
		idle, err := s.idle()
		if err != nil {
			return err
		}
		if quiet++; !idle {
			quiet = 0
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: background work is not complete after %v", s.tablet.Name, startTimeout)
		}
	}
	return nil
}

// The server schedules work four times a second: if it is idle for several of these periods,
// nothing is left to do.
const (
	lookEvery  = 100 * time.Millisecond
	quietLooks = 15
)

// idle reports whether memory is empty and no work is running.
func (s *servers) idle() (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+s.web+"/metrics?types=tablet&metrics="+strings.Join(unfinished, ","), nil)
	if err != nil {
		return false, err
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(ask)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	var entities []struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&entities); err != nil {
		return false, fmt.Errorf("metrics of %s: %w", s.tablet.Name, err)
	}
	for _, e := range entities {
		for _, m := range e.Metrics {
			if m.Name == memRowSet && m.Value > emptyBytes || m.Name != memRowSet && m.Value > 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// unfinished contains the metrics of a tablet that report inserts in memory and running work. No
// metric reports changes of disk rows in memory; they are flushed because finishWork waits for longer
// than they may stay in memory.
var unfinished = []string{memRowSet, "flush_mrs_running", "flush_dms_running", "compact_rs_running",
	"delta_minor_compact_rs_running",
	"delta_major_compact_rs_running"}

const (
	memRowSet  = "memrowset_size"
	emptyBytes = 400 // an empty store takes 265, a store of one row more than 600
)
