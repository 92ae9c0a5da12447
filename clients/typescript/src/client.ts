/**
 * The client: `decide` always returns an action, the server's decision or the safe action with a reason.
 *
 * @module
 */
import createOpenapiClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

/** The fields of an experiment, as `GET /v1/{experiment}` returns them. */
export type Experiment = Schemas["ExperimentDetail"];
/** What the server did with an outcome. */
export type OutcomeResponse = Schemas["OutcomeResponse"];
/** An item of a batch, or a request, that the server rejected. */
export type ErrorResponse = Schemas["ErrorResponse"];
/** A context: every column that the problem declares, by name. */
export type Context = Record<string, boolean | number | string | null>;
/** Signals of an outcome by name. */
export type Signals = Record<string, number | boolean>;

/** A decision; `logged` is false if it is the client's, and then outcomes are not accepted. */
export type Decision = Pick<Schemas["DecisionResponse"], "decision_id" | "action" | "probabilities" | "mode"> &
  Partial<Schemas["DecisionResponse"]> & { logged: boolean };

/** An outcome of a decision, for `learnMany`. */
export interface Outcome {
  decision: Decision | string;
  signals: Signals;
  /** False: the decision was not carried out, and nothing is learned from it. */
  shown?: boolean;
  /** Your id of this report. A retry with the same id gets the same answer. */
  outcomeId?: string;
}

/** What `decide` takes beside the context. */
export interface DecideOptions {
  /** The available actions; all, if it is left out. */
  only?: string[];
  /** Your id. The same id with the same arguments gets the same decision. */
  decisionId?: string;
  /** An action, or probabilities by action; as much of it is played as the limits allow. */
  propose?: string | Record<string, number>;
  /** A score for every action; the safe mixture with the highest score is played. */
  scores?: Record<string, number>;
  /** Your name for the user; the server keeps the context so that it can be erased by this name. */
  user?: string;
}

/** Address, key and deadlines. */
export interface ClientOptions {
  /** The server's address, such as `http://127.0.0.1:8000`. */
  url: string;
  /** A key with the role writer. */
  key: string;
  /** The name of the experiment. */
  experiment: string;
  /** The safe action, returned if the server does not answer. */
  safe: string;
  /** The deadline of one call with all its retries, in milliseconds. */
  timeoutMs?: number;
  /** How often a request is sent at most. */
  maxAttempts?: number;
  /** Milliseconds before the second attempt; doubles with every further one. */
  retryDelayMs?: number;
}

/** The server rejected a request (4xx); `code` says why. */
export class RequestRejected extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status: number,
  ) {
    super(message);
    this.name = "RequestRejected";
  }
}

/** An outcome could not be delivered: the server did not answer in time. Report it again. */
export class ServerUnavailable extends Error {
  override name = "ServerUnavailable";
}

const MAX_BATCH_SIZE = 1000;
const UNLOGGED_PREFIX = "unlogged-";
const SERVER_UNAVAILABLE = "server_unavailable"; // a value of stagewise.Reason
const NOT_SHOWN_DELAYS_MS = [100, 300, 1000, 3000, 10_000, 30_000];
const MAX_NOT_SHOWN = 100_000;

/** Return an id that sorts by time, as the server's own do. */
export function newId(): string {
  const random = crypto.getRandomValues(new Uint8Array(10));
  const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return Date.now().toString(16).padStart(12, "0") + hex;
}

interface Answer {
  status: number;
  content: unknown;
  problem: string;
  /** Whether the server may have received the request. */
  sent: boolean;
}

/** A client of one experiment. */
export class Client {
  readonly safe: string;
  private readonly http: ReturnType<typeof createOpenapiClient<paths>>;
  private readonly options: Required<ClientOptions>;
  private readonly notShown = new Map<string, number>(); // ids to report, and how often the server did not know them
  private timer: NodeJS.Timeout | undefined;
  private turn = 0;

  constructor(options: ClientOptions) {
    this.options = { timeoutMs: 1000, maxAttempts: 4, retryDelayMs: 20, ...options };
    for (const name of ["url", "key", "experiment", "safe"] as const) {
      if (typeof options[name] !== "string" || options[name] === "") {
        throw new TypeError(`${name} is ${JSON.stringify(options[name])}; it must be a text that is not empty`);
      }
    }
    for (const name of ["timeoutMs", "maxAttempts"] as const) {
      if (!(this.options[name] >= 1)) throw new RangeError(`${name} is ${this.options[name]}; it must be at least 1`);
    }
    this.safe = options.safe;
    this.http = createOpenapiClient<paths>({
      baseUrl: options.url.replace(/\/+$/, ""),
      headers: { Authorization: `Bearer ${options.key}` },
    });
  }

  /** Return the action for one user. Rejects with RequestRejected only (4xx). */
  async decide(context: Context = {}, options: DecideOptions = {}): Promise<Decision> {
    const request = buildRequest(context, options);
    const answer = await this.send("decisions", request);
    return this.readDecision(request.decision_id, answer, answer.status === 200 ? answer.content : undefined);
  }

  /** Return the actions for many users, in requests of up to 1000; an error for each item that was rejected. */
  async decideMany(requests: (DecideOptions & { context: Context })[]): Promise<(Decision | ErrorResponse)[]> {
    const decisions: (Decision | ErrorResponse)[] = [];
    for (let first = 0; first < requests.length; first += MAX_BATCH_SIZE) {
      const batch = requests.slice(first, first + MAX_BATCH_SIZE).map((one) => buildRequest(one.context, one));
      const answer = await this.send("decisions", batch); // 503: some of them are not logged, and say so
      const items = Array.isArray(answer.content) && answer.content.length === batch.length ? answer.content : [];
      batch.forEach((request, i) =>
        decisions.push(isError(items[i]) ? items[i] : this.readDecision(request.decision_id, answer, items[i])),
      );
    }
    return decisions;
  }

  /** Report the outcome of a decision, or the part of it that is known. Repeating a value changes nothing. */
  async learn(
    decision: Decision | string,
    signals: Signals,
    options: { shown?: boolean; outcomeId?: string } = {},
  ): Promise<OutcomeResponse> {
    const id = typeof decision === "string" ? decision : decision.decision_id;
    if (id.startsWith(UNLOGGED_PREFIX)) return { decision_id: id, accepted: [], duplicate: [], late: [] };
    const body: Record<string, unknown> = { ...signals, decision_id: id };
    if (options.shown !== undefined) body["shown"] = options.shown;
    if (options.outcomeId !== undefined) body["outcome_id"] = options.outcomeId;
    const answer = await this.send("outcomes", body);
    if (answer.status !== 200) throw new ServerUnavailable(`the outcome of ${id} was not delivered: ${answer.problem}`);
    return answer.content as OutcomeResponse;
  }

  /** Report many outcomes, in requests of up to 1000; an error for each item that was rejected. */
  async learnMany(
    outcomes: Outcome[],
  ): Promise<(OutcomeResponse | ErrorResponse)[]> {
    const learned: (OutcomeResponse | ErrorResponse)[] = outcomes.map(({ decision }) => {
      const id = typeof decision === "string" ? decision : decision.decision_id;
      return { decision_id: id, accepted: [], duplicate: [], late: [] };
    });
    const places = [...learned.keys()].filter((i) => !learned[i]!.decision_id?.startsWith(UNLOGGED_PREFIX));
    for (let first = 0; first < places.length; first += MAX_BATCH_SIZE) {
      const batch = places.slice(first, first + MAX_BATCH_SIZE);
      const bodies = batch.map((i) => {
        const { signals, shown, outcomeId } = outcomes[i]!;
        const ids = { decision_id: learned[i]!.decision_id, ...(outcomeId === undefined ? {} : { outcome_id: outcomeId }) };
        return { ...signals, ...ids, ...(shown === undefined ? {} : { shown }) };
      });
      const answer = await this.send("outcomes", bodies);
      if (!Array.isArray(answer.content) || answer.content.length !== batch.length) {
        throw new ServerUnavailable(`${batch.length} outcomes were not delivered: ${answer.problem}`);
      }
      batch.forEach((place, i) => (learned[place] = (answer.content as (OutcomeResponse | ErrorResponse)[])[i]!));
    }
    return learned;
  }

  /** Report that a decision was not carried out, so that nothing is learned from it. */
  async cancel(decision: Decision | string): Promise<OutcomeResponse> {
    return this.learn(decision, {}, { shown: false });
  }

  /** Return the experiment with its problem; undefined if the server does not answer. */
  async describe(): Promise<Experiment | undefined> {
    const answer = await this.send("", undefined);
    return answer.status === 200 ? (answer.content as Experiment) : undefined;
  }

  /** Report once more what was not shown, and stop the timer that does. */
  async close(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.notShown.size) await this.reportNotShown();
  }

  /** Send a request until it gets an answer that a retry would not change. */
  private async send(route: "decisions" | "outcomes" | "", body: unknown): Promise<Answer> {
    const { experiment, timeoutMs, maxAttempts, retryDelayMs } = this.options;
    const until = performance.now() + timeoutMs;
    let answer: Answer = { status: 0, content: undefined, problem: "there was no time to send it", sent: false };
    let sent = false;
    for (let turn = 0; turn < maxAttempts; turn++) {
      if (turn) await sleep(Math.min(retryDelayMs * 2 ** turn * (0.5 + Math.random() / 2), until - performance.now()));
      const left = until - performance.now(); // an attempt that hangs leaves half of the time to the next one
      if (left <= 0) break;
      const signal = AbortSignal.timeout(Math.max(1, Math.floor(turn < maxAttempts - 1 ? left / 2 : left)));
      answer = await this.request(route, experiment, body, signal);
      sent ||= answer.sent;
      if (answer.status && answer.status !== 429 && answer.status !== 503) break;
    }
    if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) {
      const error = isError(answer.content) ? answer.content : { code: "invalid_request", message: answer.problem };
      throw new RequestRejected(error.code, error.message, answer.status);
    }
    return { ...answer, sent };
  }

  private async request(
    route: "decisions" | "outcomes" | "",
    experiment: string,
    body: unknown,
    signal: AbortSignal,
  ): Promise<Answer> {
    const common = { params: { path: { experiment } }, signal };
    try {
      const { data, error, response } =
        route === "decisions"
          ? await this.http.POST("/v1/{experiment}/decisions", { ...common, body: body as Schemas["DecisionRequest"] })
          : route === "outcomes"
            ? await this.http.POST("/v1/{experiment}/outcomes", { ...common, body: body as Schemas["OutcomeRequest"] })
            : await this.http.GET("/v1/{experiment}", common);
      const content: unknown = data ?? error;
      const problem = isError(content) ? content.message : `the server answered ${response.status}`;
      return { status: response.status, content, problem, sent: true };
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: string } };
      const code = cause?.code;
      const sent = code !== "ECONNREFUSED" && code !== "ENOTFOUND";
      return { status: 0, content: undefined, problem: `the server cannot be reached: ${code ?? message}`, sent };
    }
  }

  /** Return the server's decision, or the safe action if there is none that is logged and can be read. */
  private readDecision(id: string, answer: Answer, content: unknown): Decision {
    const found = (content ?? {}) as Partial<Decision>;
    if (found.logged !== false && typeof found.action === "string" && typeof found.decision_id === "string") {
      this.notShown.delete(found.decision_id); // a retry got the decision, which is carried out now
      return { ...found, logged: true } as Decision;
    }
    if (answer.sent && this.notShown.size < MAX_NOT_SHOWN) {
      this.notShown.set(id, 0);
      this.schedule();
    }
    const said = { ...(answer.content as object), ...found } as { reason?: string; message?: string };
    return {
      decision_id: UNLOGGED_PREFIX + id,
      action: this.safe,
      probabilities: { [this.safe]: 1 },
      mode: "away",
      limits: {},
      logged: false,
      reason: said.reason ?? SERVER_UNAVAILABLE,
      message: said.message ?? answer.problem,
    };
  }

  /**
   * Report decisions that the server may have logged and that were not carried out. When its window closes, the server
   * would count a missing outcome as the problem declares, and learn from what never happened.
   */
  private schedule(): void {
    if (this.timer !== undefined) return;
    const delay = NOT_SHOWN_DELAYS_MS[Math.min(this.turn, NOT_SHOWN_DELAYS_MS.length - 1)]!;
    this.timer = setTimeout(async () => {
      this.timer = undefined;
      this.turn = (await this.reportNotShown()) ? 0 : this.turn + 1;
      if (this.notShown.size) this.schedule();
    }, delay);
    this.timer.unref();
  }

  private async reportNotShown(): Promise<boolean> {
    const ids = [...this.notShown.keys()].slice(0, 500);
    try {
      const answers = await this.learnMany(ids.map((decision) => ({ decision, signals: {}, shown: false })));
      ids.forEach((id, i) => {
        const times = (this.notShown.get(id) ?? NOT_SHOWN_DELAYS_MS.length) + 1;
        this.notShown.delete(id);
        if (isError(answers[i]) && times < NOT_SHOWN_DELAYS_MS.length) this.notShown.set(id, times);
      });
      return ids.every((id) => !this.notShown.has(id));
    } catch {
      return false; // rejected or unavailable: later
    }
  }
}

/** Say whether an item of a response is an error. */
export function isError(content: unknown): content is ErrorResponse {
  return typeof content === "object" && content !== null && "code" in content && "message" in content;
}

function buildRequest(context: Context, options: DecideOptions): Schemas["DecisionRequest"] & { decision_id: string } {
  const { only, decisionId, propose, scores, user } = options;
  return {
    context,
    decision_id: decisionId ?? newId(),
    ...(only === undefined ? {} : { only }),
    ...(propose === undefined ? {} : { propose }),
    ...(scores === undefined ? {} : { scores }),
    ...(user === undefined ? {} : { user }),
  };
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, milliseconds)));
}
