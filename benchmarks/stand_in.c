/* A stand-in for the CLI that takes next to no time of its own.
 *
 * It speaks as much of the stream-json protocol as the benchmarks need: `initialize`, prompts, and
 * requests for permission.  Whatever else is asked gets an empty success.  A prompt is answered by
 * `system/init`, PERMISSIONS requests one after the other, FRAMES text deltas of BYTES bytes in one
 * write, and a result; where the prompt has a uuid, its lifecycle is told as the CLI does.
 *
 *     cc -O2 -o stand_in stand_in.c
 *
 * The environment: STAND_IN_FRAMES (20), STAND_IN_BYTES (282), STAND_IN_PERMISSIONS (0).  A prompt
 * with the word "warm" in it asks for no permission and has ten deltas.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSION "\"session_id\":\"0c1d0c5e-7a4b-4a0e-9a53-3f1f7c1b2a10\""
#define ID "\"uuid\":\"5c2b7d0e-93a1-4c39-8d9c-0d4e1f2a3b4c\""

static const char HELLO[] =
    "{\"commands\":[],\"models\":[],\"output_style\":\"default\",\"pid\":1}";
static const char INIT[] =
    "{\"type\":\"system\",\"subtype\":\"init\",\"cwd\":\"/\",\"tools\":[\"Bash\",\"Edit\",\"Read\"],"
    "\"mcp_servers\":[],\"model\":\"none\",\"permissionMode\":\"default\",\"slash_commands\":[],"
    "\"apiKeySource\":\"none\",\"claude_code_version\":\"0.0.0\",\"output_style\":\"default\","
    "\"capabilities\":[\"msg_lifecycle_v1\"]," SESSION "," ID "}\n";
static const char DELTA[] =
    "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,"
    "\"delta\":{\"type\":\"text_delta\",\"text\":\"";
static const char DELTA_END[] = "\"}}," SESSION ",\"parent_tool_use_id\":null," ID "}\n";
static const char ASSISTANT[] =
    "{\"type\":\"assistant\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\","
    "\"role\":\"assistant\",\"model\":\"none\",\"content\":[{\"type\":\"text\",\"text\":\"word\"}],"
    "\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":10,"
    "\"output_tokens\":1}},\"parent_tool_use_id\":null," SESSION "," ID "}\n";
static const char RESULT[] =
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"duration_ms\":60,"
    "\"duration_api_ms\":50,\"num_turns\":1,\"result\":\"word\",\"stop_reason\":\"end_turn\","
    "\"total_cost_usd\":0.00176,\"usage\":{\"input_tokens\":10,\"output_tokens\":20},"
    "\"modelUsage\":{\"none\":{\"inputTokens\":10,\"outputTokens\":20,\"costUSD\":0.00176}},"
    "\"permission_denials\":[]," SESSION "," ID;
static const char ASK[] =
    "\"request\":{\"subtype\":\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":{\"command\":"
    "\"echo hi\",\"description\":\"write\"},\"permission_suggestions\":[{\"type\":\"addRules\","
    "\"rules\":[{\"toolName\":\"Bash\",\"ruleContent\":\"echo hi *\"}],\"behavior\":\"allow\","
    "\"destination\":\"localSettings\"}],\"tool_use_id\":\"toolu_1\"}}\n";

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? atol(text) : otherwise;
}

static void say(const char *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(1, data, size);
        if (written < 0) _exit(1);
        data += written;
        size -= (size_t)written;
    }
}

/* The value of the last string field of that name; empty if there is none. */
static void last_string(const char *line, const char *name, char *value, size_t size) {
    char pattern[64];
    const char *found = NULL, *at = line;
    int length = snprintf(pattern, sizeof pattern, "\"%s\":", name);
    while ((at = strstr(at, pattern)) != NULL) found = at += length;
    size_t used = 0;
    if (found != NULL) {
        found += strspn(found, " ");
        if (*found == '"')
            for (found++; *found && *found != '"' && used + 1 < size; found++) value[used++] = *found;
    }
    value[used] = '\0';
}

static char *deltas(long frames, long bytes, size_t *size) {
    size_t fixed = sizeof DELTA + sizeof DELTA_END - 2, text = 1;
    if (bytes > (long)fixed) text = (size_t)bytes - fixed;
    char *all = malloc((fixed + text) * (size_t)frames + 1), *at = all;
    if (all == NULL) _exit(1);
    for (long i = 0; i < frames; i++) {
        memcpy(at, DELTA, sizeof DELTA - 1);
        at += sizeof DELTA - 1;
        memset(at, 'x', text);
        at += text;
        memcpy(at, DELTA_END, sizeof DELTA_END - 1);
        at += sizeof DELTA_END - 1;
    }
    *size = (size_t)(at - all);
    return all;
}

static void lifecycle(const char *prompt, const char *state) {
    char line[400];
    if (*prompt != '\0')
        say(line, (size_t)snprintf(line, sizeof line,
            "{\"type\":\"command_lifecycle\",\"command_uuid\":\"%s\",\"state\":\"%s\"," SESSION "," ID
            "}\n", prompt, state));
}

static void ask(long number) {
    char line[1000];
    say(line, (size_t)snprintf(line, sizeof line,
        "{\"type\":\"control_request\",\"request_id\":\"ask-%ld\",%s", number, ASK));
}

static void finish(const char *prompt) {
    char line[2000], names[200] = "";
    say(ASSISTANT, sizeof ASSISTANT - 1);
    if (*prompt != '\0')
        snprintf(names, sizeof names, ",\"user_message_uuids\":[\"%s\"]", prompt);
    lifecycle(prompt, "completed");
    say(line, (size_t)snprintf(line, sizeof line, "%s%s}\n", RESULT, names));
}

int main(void) {
    long frames = setting("STAND_IN_FRAMES", 20), asked = 0, owed = 0;
    size_t all_size, few_size, room = 1 << 16;
    char *all = deltas(frames, setting("STAND_IN_BYTES", 282), &all_size);
    char *few = deltas(10, 282, &few_size), *line = malloc(room);
    char prompt[100] = "", id[200], subtype[100], answer[1000];
    int warm = 0;
    while (getline(&line, &room, stdin) > 0) {
        if (strstr(line, "\"control_request\"") != NULL) {
            last_string(line, "request_id", id, sizeof id);
            last_string(line, "subtype", subtype, sizeof subtype);
            say(answer, (size_t)snprintf(answer, sizeof answer,
                "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\","
                "\"request_id\":\"%s\",\"response\":%s}}\n", id,
                strcmp(subtype, "initialize") == 0 ? HELLO : "{}"));
            continue;
        }
        if (strstr(line, "\"control_response\"") != NULL) {
            if (owed > 0) owed--;
        } else if (strstr(line, "\"user\"") != NULL) {
            warm = strstr(line, "warm") != NULL;
            last_string(line, "uuid", prompt, sizeof prompt);
            lifecycle(prompt, "queued");
            lifecycle(prompt, "started");
            say(INIT, sizeof INIT - 1);
            owed = warm ? 0 : setting("STAND_IN_PERMISSIONS", 0);
        } else {
            continue;
        }
        if (owed > 0) {
            ask(++asked);
        } else {
            if (warm) say(few, few_size); else say(all, all_size);
            finish(prompt);
        }
    }
    return 0;
}
