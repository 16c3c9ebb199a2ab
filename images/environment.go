package images

import "maps"

// unattended is the environment of every kernel: programs that show a text page by page show all of it, for nobody turns
// pages, and neither npm nor pip tries for a minute what fails for want of a network.
var unattended = map[string]string{
	"PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat", "SYSTEMD_PAGER": "cat",
	"LESS": "-FRXd", "LESS_LINES": "10000", // less itself ends where all fits the screen: it is told of a long one
	"npm_config_fetch_retries": "0", "PIP_RETRIES": "0",
}

// online is added for kernels with a network.
var online = map[string]string{"npm_config_fetch_retries": "2", "PIP_RETRIES": "1"}

// with is an environment and what a language adds to it.
func with(env, further map[string]string) map[string]string {
	env = maps.Clone(env)
	maps.Copy(env, further)
	return env
}
